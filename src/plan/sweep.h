// The affine form of a host pass: loop nests over items. An item reads some streams of lines (or host rows) and writes some; a stream
// starts at (entangled group, byte) = start of its side + sum over loops of step * index + its own place in the side's stream nest, and is
// `words` words long. The pass defines the work between load and store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/passes.h"
#include "topology/hypercube.h"

namespace pidcomm {

/// Where a side is. host: host rows. host_lines: lines in host order, in the library's buffer.
enum class Space { mram, host, host_lines };

/// A nest of parallel streams of one item: stream (i0, i1, ...) starts egs * i and bytes * i further. Slowest first.
struct StreamLoop {
  uint32_t count, egs;
  uint64_t bytes;
};

struct Side {
  Space space = Space::mram;
  uint64_t offset = 0;              // mram: absolute MRAM byte; host: byte of the buffer; host_lines: byte of the window
  uint32_t eg = 0;                  // entangled group of the first item
  std::vector<StreamLoop> streams;  // slowest first
  uint32_t pair_banks = 1;          // output: 2 if the fastest loop is over the banks of a bank pair
};

/// A loop over items: one step moves the input by (in_egs, in_bytes) and the output by (out_egs, out_bytes).
struct Loop {
  std::string name;
  uint32_t count;
  uint32_t in_egs, out_egs;
  uint64_t in_bytes, out_bytes;
};

/// The affine form. Threads share `outer` x words; each runs `ordered` one after another on its words; `lockstep` loops run inside every
/// chunk of words, so that the banks of a pair, whose lines are neighbours, are visited together.
struct Sweep {
  Pass pass{};
  bool rotates = false;     // PEs reorder before or after
  bool host_order = false;  // between load and store lines are in host order, else in PIM order
  uint32_t lane_mask = 0, k = 0;
  uint64_t lane_map = 0;                       // member_step, member_step_reduce: byte l is the lane that lane l takes from
  uint32_t round = 0;                          // path member_steps: sweeps of one round do not depend on each other
  std::vector<Loop> outer, ordered, lockstep;  // slowest first
  Side in, out;
  uint64_t words = 0;              // of every stream
  bool exchange = false;           // in-place alltoall: items (a, b) and (b, a) are one
  bool ordered_downwards = false;  // in-place allgather: item 0 goes last

  bool is_in_place() const { return in.space == Space::mram && out.space == Space::mram && in.offset == out.offset; }
};

/// Steps of a nest of loops, items of a sweep, and streams of an item on one side.
uint64_t steps_of(const std::vector<Loop> &loops);
uint64_t items_of(const Sweep &sweep);
uint32_t streams_of(const Side &side);

/// Pieces to cut the words of a sweep into, so that threads share evenly; 1 if the outer loops suffice. A piece has at least kShareWords
/// words.
inline constexpr uint64_t kShareWords = 64;
uint64_t pieces_of(const Sweep &sweep, int threads);

// Building blocks of sweeps.

/// Orders the loops of a sweep for memory bandwidth.
void arrange(Sweep &sweep);

/// Appends a nest over entangled groups. A step of the nest's index moves the sides by in_bytes and out_bytes. A step of entangled groups
/// moves the input if in_moves, and the output if out_moves.
void add_loops(std::vector<Loop> &loops, const char *name, const std::vector<EgLoop> &egs, bool in_moves, uint64_t in_bytes, bool out_moves,
               uint64_t out_bytes);

/// Cuts a vector of vector_bytes into 2^k slots, which become streams of the side, and sets the words of the sweep.
void add_slots(Sweep &sweep, Side &side, const LaneSplit &split, uint64_t vector_bytes);

/// Stream nest over the members' entangled groups.
void add_streams(Side &side, const std::vector<EgLoop> &egs);

/// Stream nest over the 8 lanes on the host side: a step of the member index is member_bytes, of the group index group_bytes.
void add_lane_streams(Side &side, const LaneSplit &split, uint64_t member_bytes, uint64_t group_bytes);

}  // namespace pidcomm
