// The affine form of a host pass: loop nests over items. An item reads and writes streams of lines
// (or of host rows). Each stream has `words` words. The start of a stream is a pair (entangled
// group, byte). This pair is the sum of three terms: the start of the stream's side (input or
// output), step * index of every loop, and the place of the stream in the stream nest of its side.
// The pass defines the work between load and store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/passes.h"
#include "topology/hypercube.h"

namespace pidcomm {

/// The location of the input or the output of a sweep: in MRAM, or in host rows.
enum class Space { mram, host };

/// A loop of the nest of parallel streams of one item. Loop index i adds egs * i and bytes * i to
/// the start of a stream.
struct StreamLoop {
  uint32_t count, egs;
  uint64_t bytes;
};

/// The input or the output of a sweep.
struct Side {
  Space space = Space::mram;
  uint64_t offset = 0;  // start of the side: absolute MRAM byte (mram), or byte of the host buffer
  uint32_t eg = 0;      // entangled group of the first item
  std::vector<StreamLoop> streams;  // slowest first
  uint32_t pair_banks =
      1;  // for the output: 2 if the fastest stream loop is over the two banks of a bank pair
  // If row_lanes is not 0, the fastest streams are the host rows of lanes 0 .. row_lanes-1 of a
  // section. A step of the member index moves such a stream by member_bytes, and a step of the
  // group index by group_bytes. A lane without a PE has no row.
  uint32_t row_lanes = 0;
  uint64_t member_bytes = 0, group_bytes = 0;
};

/// A loop over items. One iteration of the loop moves the start of the input by (in_egs, in_bytes)
/// and the start of the output by (out_egs, out_bytes).
struct Loop {
  std::string name;
  uint32_t count;
  uint32_t in_egs, out_egs;
  uint64_t in_bytes, out_bytes;
};

/// The affine form of a host pass. Threads share the iterations of the `outer` loops and the words
/// of the streams. Each thread runs the iterations of the `ordered` loops one after another on its
/// own words. The `lockstep` loops run inside every chunk of words, so that a thread visits the
/// adjacent lines of a bank pair close in time.
struct Sweep {
  Pass pass{};
  bool rotates = false;     // PEs reorder blocks before or after the sweep
  bool host_order = false;  // between load and store, lines are in host order, else in PIM order
  uint32_t lane_mask = 0, k = 0;
  Split split;            // the sections of the hypercube
  uint64_t lane_map = 0;  // member_step, member_step_reduce: byte l is the number of the lane from
                          // which lane l receives its bytes
  uint32_t round =
      0;  // number of the round of member steps; sweeps of one round do not depend on each other
  std::vector<Loop> outer, ordered, lockstep;  // slowest first
  Side in, out;
  uint64_t words = 0;  // number of words of every stream
  bool exchange =
      false;  // in-place alltoall: one item moves the data of both pairs (a, b) and (b, a)
  bool ordered_downwards =
      false;  // in-place allgather: the items run in descending order, and item 0 runs last

  bool is_in_place() const {
    return in.space == Space::mram && out.space == Space::mram && in.offset == out.offset;
  }
};

/// Return three numbers: the iterations of a nest of loops, the items of a sweep, and the streams
/// of an item on one side (input or output).
uint64_t iterations_of(const std::vector<Loop> &loops);
uint64_t items_of(const Sweep &sweep);
uint64_t streams_of(const Side &side);

/// The pieces into which the words of a unit of work are cut. A piece begins at a multiple of
/// `chunk_words` words.
struct Pieces {
  uint64_t count, words, chunk_words;

  uint64_t start_of(uint64_t piece) const {
    return (words + chunk_words - 1) / chunk_words * piece / count * chunk_words;
  }
};

/// Cuts the words of each of `units` units, so that threads have equal shares. Returns one piece if
/// there is one thread, or if the units already give equal shares. Cuts at multiples of 64 words,
/// or of 8 words if there would be fewer than two pieces for each thread.
Pieces pieces_of(uint64_t units, uint64_t words, int threads);

/// Lines that stay in the second-level cache.
inline constexpr uint32_t kCachedLines = 12288;

/// Streams of a part of an item: the pointers to them stay in the first-level cache, and a part has
/// enough lines to prefetch.
inline constexpr uint32_t kPartStreams = 2048;

/// Returns the number of parts with about kPartStreams streams into which to cut an item whose
/// section has very many streams; 1 for all other items. Threads carry out parts one without the
/// other. No part loads lines of another part, except those that stay in the second-level cache.
uint64_t parts_of(const Sweep &sweep);

// Functions to build sweeps.

/// Sorts the loops of a sweep so that the sweep uses the memory bandwidth well.
void arrange(Sweep &sweep);

/// Appends a nest of loops over entangled groups. One step of the member or
/// group index moves the input by in_bytes and the output by out_bytes. A step to a different
/// entangled group also moves the input to this entangled group if in_moves, and the output if
/// out_moves.
void add_loops(std::vector<Loop> &loops, const char *name, const std::vector<EgLoop> &egs,
               bool in_moves, uint64_t in_bytes, bool out_moves, uint64_t out_bytes);

/// Cuts a vector of vector_bytes bytes into 2^k slots, which become streams of the side, and sets
/// the number of words of the sweep.
void add_slots(Sweep &sweep, Side &side, const Split &split, uint64_t vector_bytes);

/// Add a stream nest over the sections of a set, over the blocks of the members in a section, or
/// over the entangled groups of a section.
void add_members(Side &side, const Split &split);
void add_blocks(Side &side, const Split &split, uint64_t block_bytes);
void add_section(Side &side, const Split &split);

/// Adds the host rows of the lanes of a section; see Side::row_lanes. member_bytes: from one lane
/// of a group to the next. group_bytes: from the row of a group to the row of the next group.
void add_pe_rows(Side &side, const Split &split, uint64_t member_bytes, uint64_t group_bytes);

}  // namespace pidcomm
