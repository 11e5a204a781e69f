// The work of a plan, as counts that do not depend on the machine.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "pidcomm/model.h"
#include "plan/plan.h"

namespace pidcomm {

/// The kinds of work on a line, which are the rows of PIDCOMM_LINE_COSTS.
#define PIDCOMM_ROW(key, ...) key,
enum class LineWork { PIDCOMM_LINE_COSTS(PIDCOMM_ROW) };
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(...) +1
inline constexpr int kLineWorks = 0 PIDCOMM_LINE_COSTS(PIDCOMM_ROW);
#undef PIDCOMM_ROW

/// A phase of a call. All threads begin a phase together and end it together.
struct Phase {
  /// pass: lines are loaded, processed and stored. from_pes, to_pes: transfers of the SDK. host:
  /// the work of the host between these transfers.
  enum class Kind { pass, from_pes, host, to_pes };
  Kind kind = Kind::pass;
  double mram_read = 0, mram_written = 0;  // bytes of lines
  double host_read = 0, host_written = 0;  // bytes of host memory
  std::array<double, kLineWorks> lines{};  // number of lines for each kind of work
  double streams = 0;                      // number of streams whose address is computed
  double pieces = 0;                       // number of pieces copied or combined in host memory
  bool combines = false,
       is_slow = false,   // of kind `host`: the phase combines; the vector unit lacks the operator
      is_scalar = false;  // of kind `host`: the phase combines with the instruction set `scalar`
  bool is_broadcast = false;  // of kind `to_pes`: all PEs receive one row
  double units = 1;           // number of units of work that threads share

  double &count(LineWork what) { return lines[static_cast<std::size_t>(what)]; }
  double count(LineWork what) const { return lines[static_cast<std::size_t>(what)]; }
};

struct Work {
  std::vector<Phase> phases;
  double pes = 0, ranks = 0;
  double flushed_lines =
      0;  // lines flushed before the first load, with coherence policy `hardware`
  std::vector<Reorder> reorders;
};

/// Counts the work of a plan. isa: a code of PIDCOMM_ISAS, which decides which operators are slow.
Work work_of(const Plan &plan, int isa);

/// Whether an operator needs several instructions of an instruction set. These operators are
/// products of integers of 8 or 64 bits, minima and maxima of floats, and, on AVX2, minima and
/// maxima of integers of 64 bits. (`scalar` is compiled for SSE2, which counts as AVX2.)
bool is_slow(int op, const ElementType &type, int isa);

}  // namespace pidcomm
