/// The oracle computes collectives, scans and messages from their definitions, with plain loops.
///
/// The oracle shares only the names and codes in <pidcomm/tables.h> with the library, so it misses
/// an error only if the oracle and the library make the same error. pidcomm.h explains the words
/// PE, lane, entangled group (EG), group, member, block and window.
///
/// Payloads are rows: row i starts at byte i * row_bytes. PE rows are in PE order (p = 8 * EG +
/// lane); host rows are in group order. `rows_before` and `rows_after` return the number and size
/// of a collective's input rows and output rows.
///
/// Floating point: the oracle computes in the documented order of the `tile` technique (see
/// `expected`), so the results of the oracle and of the library must be equal bit by bit. Compile
/// the oracle without -ffast-math and with -ffp-contract=off. For reductions, all NaNs compare
/// equal; for data movement, NaNs must have the same bits.
///
/// Threads: calls with large payloads use threads on all CPUs; the results do not depend on the
/// number of CPUs. Functions throw std::invalid_argument for invalid cases and sizes.
#pragma once

#include <pidcomm/tables.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "operators.h"

namespace verify {

/// Codes of tables.h: kALLTOALL, kREDUCE_SCATTER, ..., kINT32, ..., kSUM, ... (The prefix k avoids
/// that a macro called MIN replaces a name.)
#define VERIFY_ROW(ENUM, code, ...) k##ENUM = code,
enum Collective : int { PIDCOMM_COLLECTIVES(VERIFY_ROW) PIDCOMM_SCANS(VERIFY_ROW) };
enum Type : int { PIDCOMM_TYPES(VERIFY_ROW) };
enum Op : int { PIDCOMM_OPS(VERIFY_ROW) };
#undef VERIFY_ROW

/// A test case: one collective or scan on one hypercube.
struct Problem {
  int collective = 0;                   ///< code of PIDCOMM_COLLECTIVES or PIDCOMM_SCANS
  std::vector<std::uint32_t> axis_len;  ///< first axis fastest
  std::string mask;                     ///< one '0' or '1' per axis
  std::size_t bytes = 0;                ///< number of bytes per PE, as in pidcomm.h
  int type = 0;                         ///< code of PIDCOMM_TYPES
  int op = 0;  ///< code of PIDCOMM_OPS; collectives without an operator ignore it
  std::shared_ptr<const Fold> fold = nullptr;  ///< replaces op
};
/// Returns the size in bytes of an element: of the type, or of the fold.
std::size_t element_bytes(const Problem &problem);

/// Returns the coordinates of PE `pe`, where pe = x + len_x * (y + len_y * (z + ...)).
std::vector<std::uint32_t> coordinates(const std::vector<std::uint32_t> &axis_len,
                                       std::uint32_t pe);

/// The groups of PEs under an axis mask.
struct Groups {
  std::uint32_t pes = 0;        ///< product of the axis lengths
  std::uint32_t count = 0;      ///< number of groups
  std::uint32_t group_pes = 0;  ///< N
  std::vector<std::uint32_t>
      group;  ///< group of each PE: its unselected coordinates, first unselected axis fastest
  std::vector<std::uint32_t>
      member;  ///< member index of each PE: its selected coordinates, first selected axis fastest
  std::vector<std::uint32_t> pe_of;  ///< pe_of[group * N + member]

  std::span<const std::uint32_t> members(std::uint32_t of_group) const {
    return {pe_of.data() + std::size_t{of_group} * group_pes, group_pes};
  }
};
Groups groups_of(const std::vector<std::uint32_t> &axis_len, const std::string &mask);

struct Rows {
  std::size_t count = 0;
  std::size_t row_bytes = 0;
  bool at_pes = false;  ///< whether the rows are PE rows; else the rows are host rows
  std::size_t bytes() const { return count * row_bytes; }
};
Rows rows_before(const Problem &problem);
Rows rows_after(const Problem &problem);

/// Returns the size in bytes of an element of type code `type`. Throws for unknown codes.
std::size_t element_bytes(int type);
bool is_float(int type);
/// Whether the operator is defined for the type. (and, or, xor are not defined for floats.)
bool is_defined(int op, int type);

/// Returns the result of the collective `problem` for the input `before`
/// (rows_before(problem).bytes() bytes).
///
/// If every group has the same 1, 2, 4 or 8 lanes in each of its EGs, and 8 divides the number of
/// PEs, a reduction first combines the members in each lane (pe mod 8), left to right, in ascending
/// order of their EGs (pe div 8). Then it combines the group's lanes pairwise, in ascending order:
/// ((0+1)+(2+3))+((4+5)+(6+7)). Otherwise it combines the members left to right, in ascending
/// order; so do scans, and folds without `finish`. Integers wrap. min and max propagate NaN and
/// order -0 below +0.
std::vector<std::uint8_t> expected(const Problem &problem, std::span<const std::uint8_t> before);
/// Writes the result of the other overload to memory of the caller. This memory has
/// rows_after(problem).bytes() bytes and must not overlap `before`.
void expected(const Problem &problem, std::span<const std::uint8_t> before,
              std::span<std::uint8_t> after);

/// The number of wrong elements and, if there are wrong elements, a sentence about the first wrong
/// element in row order.
struct Verdict {
  std::uint64_t wrong = 0;
  std::string first;
};

/// Does the work of expected() and compare(), but does not need memory for all expected rows. Use
/// this function for large payloads.
Verdict check(const Problem &problem, std::span<const std::uint8_t> before,
              std::span<const std::uint8_t> got);

/// A message between PEs: the fields of pidcomm_pe_message, with the same meaning.
struct Message {
  std::uint32_t from_pe, to_pe, from, to, bytes, runs, from_step, to_step;
};
/// Carries out messages from the rows `before` of PEs to the rows `after`, word by word. Rows have
/// row_bytes bytes. Throws for messages outside the rows.
void move(std::span<const Message> messages, std::size_t row_bytes,
          std::span<const std::uint8_t> before, std::span<std::uint8_t> after);

/// Compares rows element by element. Bits must be equal, with one exception: if `nan_equal` is true
/// (for reductions), any two NaNs are equal. `row_name` is "PE", "host row" or another name of a
/// row.
Verdict compare(int type, std::size_t row_bytes, std::span<const std::uint8_t> got,
                std::span<const std::uint8_t> want, bool nan_equal = false,
                const char *row_name = "PE");

}  // namespace verify
