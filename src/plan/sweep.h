// The affine form of a host pass: loop nests over items. An item reads and writes streams of lines (or of host rows). Each stream has
// `words` words. Its start, a pair (entangled group, byte), is the sum of the start of its side, step * index of every loop, and its place
// in the stream nest of the side. The pass defines the work between load and store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/passes.h"
#include "topology/hypercube.h"

namespace pidcomm {

/// The location of a side. host: in host rows. host_lines: in the library's buffer, as lines in host order.
enum class Space { mram, host, host_lines };

/// A loop of the nest of parallel streams of one item: index i adds egs * i and bytes * i to the start of a stream.
struct StreamLoop {
  uint32_t count, egs;
  uint64_t bytes;
};

/// The input or the output of a sweep.
struct Side {
  Space space = Space::mram;
  uint64_t offset = 0;              // start: absolute MRAM byte (mram), byte of the buffer (host), or byte of the window (host_lines)
  uint32_t eg = 0;                  // entangled group of the first item
  std::vector<StreamLoop> streams;  // slowest first
  uint32_t pair_banks = 1;          // output: 2 if the fastest loop is over the two banks of a bank pair
};

/// A loop over items: one step moves the input by (in_egs, in_bytes) and the output by (out_egs, out_bytes).
struct Loop {
  std::string name;
  uint32_t count;
  uint32_t in_egs, out_egs;
  uint64_t in_bytes, out_bytes;
};

/// The affine form. Threads share the steps of the `outer` loops and the words. Each thread runs the steps of the `ordered` loops one after
/// another on its words. The `lockstep` loops run inside every chunk of words, so that the banks of a pair, whose lines are neighbours, are
/// visited together.
struct Sweep {
  Pass pass{};
  bool rotates = false;     // PEs reorder blocks before or after the sweep
  bool host_order = false;  // lines between load and store are in host order, else in PIM order
  uint32_t lane_mask = 0, k = 0;
  uint64_t lane_map = 0;                       // member_step, member_step_reduce: byte l is the lane from which lane l receives its bytes
  uint32_t round = 0;                          // of member steps: sweeps of one round do not depend on each other
  std::vector<Loop> outer, ordered, lockstep;  // slowest first
  Side in, out;
  uint64_t words = 0;              // length of every stream
  bool exchange = false;           // in-place alltoall: items (a, b) and (b, a) are one item
  bool ordered_downwards = false;  // in-place allgather: item 0 comes last

  bool is_in_place() const { return in.space == Space::mram && out.space == Space::mram && in.offset == out.offset; }
};

/// Return the number of steps of a nest of loops, of items of a sweep, and of streams of an item on one side.
uint64_t steps_of(const std::vector<Loop> &loops);
uint64_t items_of(const Sweep &sweep);
uint32_t streams_of(const Side &side);

/// Returns the number of pieces into which to cut the words of a sweep, so that threads have equal shares. It is 1 if the outer loops
/// suffice. A piece has at least kShareWords words.
inline constexpr uint64_t kShareWords = 64;
uint64_t pieces_of(const Sweep &sweep, int threads);

// Functions to build sweeps.

/// Orders the loops of a sweep for memory bandwidth.
void arrange(Sweep &sweep);

/// Appends a nest of loops over entangled groups. Each step of the nest's index moves the sides by in_bytes and out_bytes. A step to other
/// entangled groups also moves the input if in_moves, and the output if out_moves.
void add_loops(std::vector<Loop> &loops, const char *name, const std::vector<EgLoop> &egs, bool in_moves, uint64_t in_bytes, bool out_moves,
               uint64_t out_bytes);

/// Cuts a vector of vector_bytes into 2^k slots, which become streams of the side, and sets the words of the sweep.
void add_slots(Sweep &sweep, Side &side, const LaneSplit &split, uint64_t vector_bytes);

/// Adds a stream nest over the members' entangled groups.
void add_streams(Side &side, const std::vector<EgLoop> &egs);

/// Adds a stream nest over the 8 lanes to a side in host rows: a step of the member index is member_bytes, and a step of the group index is
/// group_bytes.
void add_lane_streams(Side &side, const LaneSplit &split, uint64_t member_bytes, uint64_t group_bytes);

}  // namespace pidcomm
