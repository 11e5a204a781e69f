// The line kernels: functions that load, process and store lines for the executor. There is one
// table of these functions for each instruction set.
//
// Pointers to lines point into a rank's region. Consecutive words of a stream are kLineStride
// apart, and a call never crosses the end of a run. The functions do not allocate, throw or call
// the C++ standard library. Otherwise, the linker could use standard library code compiled for
// AVX-512 on machines without AVX-512.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plan/passes.h"
#include "plan/request.h"

namespace pidcomm {

/// Most passes handle this number of words of one stream before they continue with the next stream.
/// A short step uses both lines of a bank pair close in time; a long step slows down plain stores
/// to a bank pair.
inline constexpr uint32_t kStepWords = 8;

/// The largest tuned step_words of a reduction that loads from one rank.
inline constexpr uint32_t kReduceStepWords = 32;

/// The largest number of lines of an item's sums in a step of a reduction that loads from several
/// ranks. All steps have it if a rank has one group member: the memory bandwidth is lower if a pass
/// loads only a few adjacent lines of a rank at a time, because equal lines of all ranks compete
/// for a few places in the caches. allreduce has shorter steps, because it also stores to all
/// ranks.
inline constexpr uint32_t kRankStepLines = 256, kAllreduceStepLines = 64;

/// The largest number of group members that a reduction loads side by side.
inline constexpr uint32_t kMaxMembers = 8;

/// Bytes of the buffer of one item, and bytes of the buffers of all items of a call. The buffers of
/// items that a pass visits side by side are not a multiple of 4 KiB apart, because equal lines of
/// all of them would compete for a few places in the first-level cache.
inline constexpr std::size_t kItemBufferBytes = (kRankStepLines + 16) * kLineBytes;
static_assert(kItemBufferBytes % 4096 != 0);
static_assert(kReduceStepWords * kLanes <= kRankStepLines);
static_assert(2 * kAllreduceStepLines <= kRankStepLines);  // the buffer holds two steps
inline constexpr std::size_t kCallBufferBytes = kItemBufferBytes * kMaxItems;

/// The pace of a pass; see pidcomm/tuning.h. Threads read and write it as one word.
struct alignas(8) PassTuning {
  uint16_t step_words;
  uint16_t ahead;
  uint8_t ahead_level;
  uint8_t members;
  uint8_t items;
  uint8_t prefetches;
};
static_assert(sizeof(PassTuning) == 8);

struct SweepCall;
struct SweepItem;

/// The words [word, word + count) of every stream of a call.
struct Step {
  uint32_t word, count;
};

/// Lines to store. The lines of item i begin at lines + i * kItemBufferBytes, with `step.count`
/// lines for each version. A version is the content of one block of every destination. In
/// reduce_rows, it is the content of one entangled group of every section. Stream o receives
/// version o / out_pair_banks % versions.
struct Store {
  const std::byte *lines;
  Step step;
  uint32_t versions;
};

/// The pass `merge` makes each output line of a section (see Split) from lanes of input lines of
/// the section. A table is of a section or of a part of one (see parts_of), and numbers its streams
/// and entangled groups. Without a tile, lane l of the output line comes from the source in whose
/// lane_map byte l is not kNoLane; byte l is then the lane in the source.
///
/// Several targets of one entangled group can be a tile (alltoall, not in place). They share 8
/// sources, and lane l of each target comes from source l. With the mask of the tile (see
/// tile_mask_of), lane l of target n is the lane in byte (l & ~mask) | n of the lane_map of source
/// l, whose other bytes are kNoLane. The pass makes a line for each n from 0 to the mask: the OR of
/// the sources whose number has the bits n of the mask. Then it transposes these lines over the
/// lane bits of the mask.
struct MergeSource {
  uint64_t lane_map;
  uint32_t stream;  // number of the input stream
};
/// The target whose stream is 4 entangled groups before or after the stream of another target,
/// `sections_away` sections before or after it. With sections of 1, 2 or 4 entangled groups, this
/// is the target itself. The two streams are often the two banks of a pair.
struct OtherBank {
  uint32_t target, sections_away;
};
struct MergeTarget {
  uint32_t stream;  // number of the output stream
  uint32_t first_source, source_count;
  uint32_t keep_lanes;                 // lanes whose bytes in memory do not change
  uint32_t tile_targets = 1;           // first target of a tile: the number of its targets; else 1
  OtherBank previous = {}, next = {};  // if the table joins banks
};
/// Returns the mask of a tile with 2 to 8 targets. Always inline: see line.h.
[[gnu::always_inline]] constexpr uint32_t tile_mask_of(uint32_t targets) {
  return targets <= 2 ? 1 : targets <= 4 ? 3 : 7;
}
/// Targets, and the input streams to prefetch for them: those that no earlier unit of the table
/// loads (the first unit has at least one). All targets of a unit are in tiles, or none is. Unless
/// the table joins banks, a unit loads from few streams, because the memory bandwidth is lower if a
/// thread visits many streams at a time.
struct MergeUnit {
  uint32_t first_stream, stream_count, first_target, target_count;
};
/// See MergeTable::joins_banks. The lines of a strip of these targets take 64 KiB.
inline constexpr uint32_t kJoinedTargets = 64;
struct MergeTable {
  const MergeUnit *units;
  const uint32_t *streams;  // numbers of input streams; null: 0, 1, ...
  const MergeTarget *targets;
  const MergeSource *sources;
  uint32_t unit_count;
  uint32_t in_streams, out_streams;
  uint32_t step_words;   // the pass visits all units of all items for these words, then continues
                         // with the next words; a multiple of strip_words
  uint32_t strip_words;  // words of a stream that the pass visits before the next stream
  bool is_buffered;      // the pass copies all lines of a strip to a buffer before it stores lines;
                         // then there is one unit
  // The pass makes the lines of up to kJoinedTargets targets of a unit, then stores those of the
  // two banks of a pair together. There are no tiles.
  bool joins_banks = false;
};

/// How the rows of the 8 lanes of a bundle differ. Bundles that are not `mixed` need no conditions.
enum class LaneRows : uint8_t {
  mixed,
  same,      // all lanes have one row
  distinct,  // there are 8 rows, and no lane is the first of its row
};

/// Input streams with equal rows: lane l of all these streams has row `rows[l]`. A pass combines
/// the lines of the streams, and then the lanes of the result with the rows. If the elements are
/// floats, a bundle has one stream, because the order of their sums is defined.
///
/// An entry is the number of a row, or kNoRow. kFirstOfRow is set for the first lane of a row, in
/// the order of the bundles.
inline constexpr uint32_t kNoRow = ~0u, kFirstOfRow = 1u << 31;
struct RowBundle {
  uint32_t first_stream, stream_count;  // in RowTable::streams
  LaneRows lanes;
  uint32_t rows[kLanes];
};
/// The largest number of streams of a bundle. With more, allreduce takes more time, because it
/// stores only after each bundle.
inline constexpr uint32_t kBundleStreams = 4;

/// The passes `reduce_rows` and `reduce_rows_to_host` accumulate the words of PEs in rows. If a set
/// has several sections, a call has one item, and a bundle has one stream.
struct RowTable {
  const RowBundle *bundles;
  const uint32_t *streams;  // numbers of the input streams, bundle after bundle
  const uint32_t *out;      // [entangled group][lane]: a row, or kNoRow
  const uint32_t *out_egs;  // the entangled groups; those with equal rows follow each other
  uint32_t bundle_count, in_streams;
  uint32_t egs;            // number of entangled groups
  uint32_t rows;           // number of rows
  uint32_t step_words;     // kStripWords, or the tuned step_words for a long step
  uint32_t batch_streams;  // see RowPass::accumulate; 0 if a set has one section
  bool stores_later;       // allreduce, with egs input streams: a pass can store a step while it
                           // loads the next step
};

/// Largest number of words of a stream that merge visits before the next stream, and the words of a
/// short step of the passes for rows.
inline constexpr uint32_t kStripWords = 2 * kStepWords;

/// The most words of a long step of the passes for rows. A step is long if the pass loads from at
/// least kUnprefetchedMembers sections. It is also long if the pass has at most kLongStepStreams
/// input streams, and loads from several sections or stores to host rows. In these cases, shorter
/// steps take more time; in others, the lines of long steps do not stay in the caches.
inline constexpr uint32_t kRowStepWords = 64, kLongStepStreams = 64;

/// The number of element types, which are the rows of PIDCOMM_TYPES. The codes of element types are
/// consecutive.
#define PIDCOMM_ROW(...) +1
inline constexpr int kTypes = 0 PIDCOMM_TYPES(PIDCOMM_ROW);
#undef PIDCOMM_ROW

/// The first lines of the streams of a visit (see Visit), those of item 0, those of item 1, ...,
/// and the number of words that may be read.
struct VisitLines {
  const std::byte *first[kMaxItems * kMaxMembers];
  uint32_t words;
};

/// The lines that a pass stores in a visit while it loads, word by word: for the first stream those
/// of item 0, those of item 1, ..., then for the second stream. A call that stores has at most as
/// many output streams as input streams, so a visit stores to at most `members` streams of an item,
/// rounded up to whole bank pairs.
struct VisitStores {
  const std::byte *from[kMaxItems * (kMaxMembers + 1)];
  std::byte *to[kMaxItems * (kMaxMembers + 1)];
  uint32_t count, words;
};

/// The words [word, end_word) of a visit of a reduction, which has the streams of `members` group
/// members of each item for the words of a step. For word w, the pass also prefetches the lines of
/// word w + ahead - past of a later visit.
struct Visit {
  const VisitLines *now, *later;
  const VisitStores *stores;
  uint32_t word, end_word, ahead, past, items, members;
  bool is_near;  // prefetch into the first-level cache, not only the second-level cache
  bool adds;     // false: the visit has the first members of the sums
};

/// A visit without prefetches, to all items: member m of the visit is input stream `stream` + m *
/// `stride`. The members of a visit may be in several ranks.
struct UnprefetchedVisit {
  const SweepItem *items;
  uint32_t item_count, stream, stride, members;
  Step step;
  bool adds;  // as in Visit
};

/// A batch of a step has visits without prefetches if it loads at least this number of lines of
/// each item, for at least this number of group members. Shorter steps take more time, because no
/// load is in flight between two steps.
inline constexpr uint32_t kUnprefetchedLines = 512, kUnprefetchedMembers = 4;

/// The functions that load and accumulate, for an element type and operator.
struct Accumulator {
  /// The numbers of members that have a function of their own; the last function is for any number.
  static constexpr uint32_t kMembers[] = {1, 2, 4, 8}, kFunctions = 5;
  /// Returns the index of the function for visits with `members` members.
  static constexpr uint32_t index_of(uint32_t members) {
    uint32_t index = 0;
    while (index + 1 < kFunctions && kMembers[index] != members) ++index;
    return index;
  }
  /// Combine the lines of a visit with sums, member after member. The sums of item i begin at sums
  /// + i * kItemBufferBytes. The functions accumulate[1] transpose lines after loading;
  /// accumulate[0] do not, and are null for operators that are not byte-wise.
  void (*accumulate[2][kFunctions])(std::byte *sums, const Visit &visit);
  /// [transposes][k] Do the same without prefetches, for kMembers[k] members. A CPU that executes
  /// out of order then has more loads in flight, because there are fewer instructions for each
  /// line. Null in instruction sets that take many instructions for a line, for floats of 16 bits,
  /// and for transposes of byte-wise operators.
  void (*accumulate_unprefetched[2][kFunctions - 1])(std::byte *sums,
                                                     const UnprefetchedVisit &visit);
  /// Combines `words` lines of each stream of a bundle into rows: the words of lane l into row
  /// bundle.rows[l]. Words 8 t to 8 t + 7 of a row are line t * row_count + row. A lane whose entry
  /// has kFirstOfRow replaces the contents of its row. from: the first line of each stream.
  /// transposes: the lines are in MRAM; else they are contiguous and in host order, and the bundle
  /// has one stream.
  void (*accumulate_rows)(std::byte *rows, uint32_t row_count, const RowBundle &bundle,
                          const std::byte *const *from, uint32_t words, bool transposes);
};

/// Tiles of lines to reduce over the lanes of their groups. Tile t has 2^k lines, where k is the
/// number of bits of the lane mask; line i is at first[i] + (word + words[t]) * stride(). After
/// loading, lines are in PIM order for byte-wise operators, and in host order (word i is lane i)
/// for all others.
struct LaneTiles {
  const std::byte *const *first;
  uint32_t word;
  const uint32_t *words;  // null: 0, 1, ...
  uint32_t count;         // number of tiles
  uint32_t lane_mask;     // the index of the function in Reducer::reduce_tiles
  bool in_mram;           // the lines are in MRAM, else in a buffer
  bool transposes;        // lines are transposed after loading

  std::size_t stride() const { return in_mram ? kLineStride : kLineBytes; }
};

/// The functions that combine the lanes of lines, for an element type and operator.
struct Reducer {
  /// [lane mask] Load tiles and combine their lanes pairwise, from the lowest bit of the lane mask
  /// to the highest bit. In line t of the results, lane l has the result of its group for the line
  /// of tile t whose number is the selected bits of l. `results` may overlap the tiles if line t is
  /// a line of tile t or of an earlier tile. An instruction set may have one function for all lane
  /// masks.
  void (*reduce_tiles[kLanes])(std::byte *results, const LaneTiles &tiles);
  /// Computes into = into (op) from for `bytes` bytes, a multiple of 8. The data are in host order;
  /// for byte-wise operators the data may be in any order. Both pointers may be unaligned.
  void (*combine)(std::byte *into, const std::byte *from, std::size_t bytes);
};

/// The streams of one item. Each pointer points to word 0 of the chunk in its stream.
struct SweepItem {
  const std::byte *const *in;  // pointers to lines, or to host rows for from_host (8 for each
                               // entangled group; null if there is no PE)
  std::byte *const *out;
};

/// The input streams of the call that probably follows. A pass may prefetch their words before
/// prefetch_end.
struct NextCall {
  const SweepItem *items;
  uint32_t item_count, in_count, prefetch_end;
};

/// Applies `store` of a pidcomm_operator to results before they are written to MRAM or host rows.
struct Finish {
  void (*function)(void *elements, const void *partials, std::size_t count, std::size_t members,
                   const void *context);
  const void *context;
  uint32_t element_bytes, members;

  /// elements: `bytes` bytes of elements in host order.
  void apply(std::byte *elements, std::size_t bytes) const {
    function(elements, elements, bytes / element_bytes, members, context);
  }
};

/// The arguments of a pass: words [0, words) of some items. These items differ only in their stream
/// pointers.
struct SweepCall {
  PassTuning tuning;
  const SweepItem *items;
  uint32_t item_count;
  uint32_t in_count, out_count;  // numbers of input streams and output streams of an item
  uint32_t out_pair_banks = 1;   // 2 if output streams 2n and 2n + 1 are a bank pair, else 1
  /// Number of group members with input streams in one rank. With prefetches, a reduction loads at
  /// most this number side by side.
  uint32_t rank_members = 1;
  uint32_t words;
  uint32_t first_words = kStepWords;  // words of the first step, chosen so that all later steps
                                      // start at a line boundary of host rows
  uint32_t prefetch_end;              // only words before this word may be prefetched
  NextCall next;
  /// to_host: whether the words follow those of the call before in the same rows, and whether those
  /// of the next call follow. Both calls have at least kStepWords words, the same items and the
  /// same tuning, and the words of rows that wait in the item buffers stay there between the calls.
  bool follows = false, is_followed = false;
  uint32_t lane_mask;
  uint64_t lane_map;    // member_step, member_step_reduce
  uint32_t keep_lanes;  // lanes whose bytes in memory do not change, in the last entangled group of
                        // a section
  bool host_order;      // lines between load and store are in host order, else in PIM order
  bool load_transposes;    // lines are transposed after loading
  bool store_transposes;   // lines are transposed before storing (rotated passes and member steps)
  bool non_temporal_rows;  // use non-temporal stores for whole lines of host rows
  const Accumulator *accumulator;
  const Reducer *reducer;
  const Finish *finish;     // of reductions and to_host; may be null
  std::byte *item_buffers;  // kCallBufferBytes, aligned to 64
  const MergeTable *merge;  // merge
  const RowTable *rows;     // reduce_rows, reduce_rows_to_host
  /// merge, if buffered: strip_words lines for every input stream. reduce_rows and
  /// reduce_rows_to_host: the rows, then, if a set has several sections, step_words lines for every
  /// stream of a batch. If the pass stores later, then the lines of a step to store, or, if a set
  /// has one section, a second set of rows.
  std::byte *section_buffer;
};

/// Runs of lines to copy side by side. If `in` is null, the call stores lines that are not zero; if
/// `out` is null, the call only loads lines.
struct CopyCall {
  const std::byte *const *in;
  std::byte *const *out;
  uint32_t streams, banks, words;
  uint32_t strip_words;   // words of one stream that are copied before the next stream
  uint32_t ahead_words;   // prefetch distance in words; 0: no prefetch
  uint32_t ahead_level;   // level of the cache to prefetch into, 1 or 2
  uint32_t prefetch_end;  // only words before this word may be prefetched
};

struct Kernels {
  int isa;
  const char *name;
  bool (*is_supported)();  ///< whether this processor has the instructions
  void (*pass[kPasses])(const SweepCall &call);
  // [type code - PIDCOMM_INT8][op]; functions are null if the operator is not defined for the type
  const Accumulator *const *accumulators;
  const Reducer *const *reducers;
  /// Flushes `words` words of one bank (banks = 1) or of a bank pair (banks = 2) from the caches.
  void (*flush)(const std::byte *line, uint32_t words, uint32_t banks);
  /// Prefetches `words` words of one bank into the second-level cache.
  void (*prefetch)(const std::byte *line, uint32_t words);
  /// Completes earlier loads, flushes and non-temporal stores.
  void (*fence)();
  /// Copies `lines` * 64 contiguous bytes to `to` with non-temporal stores, and, unless it is null,
  /// to `cached` with other stores. Only `to` must be aligned to 64 bytes.
  void (*copy_non_temporal)(std::byte *to, std::byte *cached, const std::byte *from,
                            std::size_t lines);
  /// Runs the copy of the streaming limit.
  void (*copy)(const CopyCall &call);
};

/// Returns the table of functions for an ISA code. Requires: isa_available(isa).
const Kernels &kernels_of(int isa);

/// Whether the ISA code is known and this machine can run the instruction set.
bool isa_available(int isa);

/// Returns the available ISA with the highest level.
int best_isa();

}  // namespace pidcomm
