// What the executor calls of the per-ISA code: one table of functions per instruction set.
//
// Pointers to lines are pointers into a rank's region; consecutive words of a stream are kLineStride apart and a call never crosses the
// end of a run. Nothing here allocates, throws or calls the standard library, so that no code compiled for a wider instruction set can
// leak into the rest of the program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plan/passes.h"
#include "plan/request.h"

namespace pidcomm {

/// Words after which a pass goes from one stream to the next, unless it says otherwise: both lines of a bank pair are to be used while
/// memory has them at hand. With 64 words instead of 8, plain stores to a bank pair fall to half the speed.
/// (Lines of one row for many entangled groups are made in longer steps, as many as the buffer of an item holds, and stored pair by pair.)
inline constexpr uint32_t kStepWords = 8;

/// Words of a step of reduce_scatter: longer, because there are many streams, and memory likes more than a few lines of each.
inline constexpr uint32_t kReduceStepWords = 16;

/// Buffers of the items of a call: an accumulator line per lane and word of a step of every item.
inline constexpr std::size_t kItemBufferBytes = kReduceStepWords * kLanes * kLineBytes;
inline constexpr std::size_t kCallBufferBytes = kItemBufferBytes * kMaxItems;

struct SweepCall;
struct SweepItem;

/// Words [word, word + count) of a call.
struct Step {
  uint32_t word, count;
};

/// Lines that wait to be stored: those of item i from lines + i * kItemBufferBytes on, `step.count` of each version. A version is for a
/// block of every destination; there is one, for all streams, or a power of two.
struct Store {
  const std::byte *lines;
  Step step;
  uint32_t versions;
};

/// Element types: rows of PIDCOMM_TYPES, whose codes follow one another.
#define PIDCOMM_ROW(...) +1
inline constexpr int kTypes = 0 PIDCOMM_TYPES(PIDCOMM_ROW);
#undef PIDCOMM_ROW

/// The functions that depend on element type and operator.
struct Reducer {
  /// For every item and block j: sum[j] = in[j] (op) in[blocks + j] (op) in[2 * blocks + j] ..., from the left. The sums of item i
  /// begin at sums + i * kItemBufferBytes, there word w of block j is line j * step.count + w. What `store` names (null: nothing) is
  /// stored on the way, to all streams of every item. The second one transposes lines when it has loaded them.
  void (*accumulate[2])(const SweepCall &call, Step step, std::byte *sums, uint32_t blocks, const Store *store);
  /// Every lane of each of `words` lines becomes the pairwise combination over the lanes of its group, from the lowest bit of lane_mask.
  /// Lines are in PIM order for byte-wise operators and in host order (word i is lane i) otherwise.
  void (*reduce_lanes)(std::byte *lines, uint32_t words, uint32_t lane_mask);
  /// into (op)= from, `bytes` bytes, a multiple of 8, in host order, or in any if the operator is byte-wise; both may be unaligned.
  void (*combine)(std::byte *into, const std::byte *from, std::size_t bytes);
};

/// The streams of one item, at word 0 of the chunk.
struct SweepItem {
  const std::byte *const *in;  // lines, or host rows for from_host
  std::byte *const *out;
};

/// Words [0, words) of some items that differ in their pointers only.
struct SweepCall {
  const SweepItem *items;
  uint32_t item_count;
  uint32_t in_count, out_count;  // streams of an item
  uint32_t out_pair_banks = 1;   // 2: streams 2n and 2n + 1 to store to are a bank pair; else 1
  uint32_t words;
  uint32_t first_words =
      kStepWords;         // of the first step, such that the others meet host rows at a multiple of a line; kStepWords if that is so anyway
  uint32_t prefetch_end;  // lines of words before this one may be fetched ahead
  uint32_t lane_mask;
  uint64_t lane_map;       // member_step, member_step_reduce
  uint32_t keep_lanes;     // from_host with one stream to store: lanes whose bytes in memory stay as they are
  bool host_order;         // of lines between load and store; else PIM order
  bool load_transposes;    // lines come in the other order
  bool store_transposes;   // lines go in the other order (rotated passes only: the others know)
  bool non_temporal_rows;  // to_host: rows are stored past the caches where they are aligned
  const Reducer *reducer;
  std::byte *item_buffers;  // kCallBufferBytes, aligned to 64
};

/// Runs of lines that are copied side by side. in or out may be null (stores of zero lines, loads only).
struct CopyCall {
  const std::byte *const *in;
  std::byte *const *out;
  uint32_t streams, banks, words;
  uint32_t turn_words;    // of one stream before the next
  uint32_t ahead_words;   // by which loads run after prefetches; 0: no prefetch
  uint32_t ahead_level;   // of the cache to fetch into, 1 or 2
  uint32_t prefetch_end;  // lines of words before this one may be fetched ahead
};

struct Kernels {
  int isa;
  const char *name;
  bool (*is_supported)();  ///< whether this processor has its instructions
  void (*pass[kPasses])(const SweepCall &call);
  const Reducer *reducers[kTypes];  // [type code - PIDCOMM_INT8][op]; null functions where the operator is not defined
  /// Flushes `words` words of an unpaired bank (banks = 1) or of a bank pair (2) from the caches.
  void (*flush)(const std::byte *line, uint32_t words, uint32_t banks);
  /// Loads, flushes and non-temporal stores before it are done.
  void (*fence)();
  /// The streaming limit.
  void (*copy)(const CopyCall &call);
};

/// The table of an ISA code. Requires: isa_available(isa).
const Kernels &kernels_of(int isa);

/// True if the code is known and this machine can run it.
bool isa_available(int isa);

/// The available ISA of the highest level.
int best_isa();

}  // namespace pidcomm
