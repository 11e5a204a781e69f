// The per-ISA functions that the executor calls: one table per instruction set.
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

/// Words of a stream that a pass handles before the next stream, unless it says otherwise. Short steps use both lines of a bank pair close
/// in time; long steps slow down plain stores to a bank pair. (If one row's lines go to many entangled groups, the step is as long as an
/// item's buffer.)
inline constexpr uint32_t kStepWords = 8;

/// Words of a step of reduce_scatter: it has many streams, and longer runs of each use the memory bandwidth better.
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

/// Lines to store: those of item i begin at lines + i * kItemBufferBytes, `step.count` per version. A version is for one block of every
/// destination; their number is 1 (for all streams) or a power of two.
struct Store {
  const std::byte *lines;
  Step step;
  uint32_t versions;
};

/// Element types: rows of PIDCOMM_TYPES, whose codes are consecutive.
#define PIDCOMM_ROW(...) +1
inline constexpr int kTypes = 0 PIDCOMM_TYPES(PIDCOMM_ROW);
#undef PIDCOMM_ROW

/// The functions that depend on element type and operator.
struct Reducer {
  /// For every item and block j: sum[j] = in[j] (op) in[blocks + j] (op) in[2 * blocks + j] ..., from the left. The sums of item i
  /// begin at sums + i * kItemBufferBytes; word w of block j is line j * step.count + w. Meanwhile the lines of `store` (null: none) are
  /// stored to all streams of every item. accumulate[1] transposes lines after loading.
  void (*accumulate[2])(const SweepCall &call, Step step, std::byte *sums, uint32_t blocks, const Store *store);
  /// Every lane of each of `words` lines becomes the pairwise combination over the lanes of its group, from the lowest bit of lane_mask.
  /// Lines are in PIM order for byte-wise operators and in host order (word i is lane i) otherwise.
  void (*reduce_lanes)(std::byte *lines, uint32_t words, uint32_t lane_mask);
  /// into (op)= from, `bytes` bytes, a multiple of 8, in host order, or in any order if the operator is byte-wise; both may be unaligned.
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
  uint32_t first_words = kStepWords;  // of the first step, so that the others start at a line boundary of host rows
  uint32_t prefetch_end;              // words before this one may be prefetched
  uint32_t lane_mask;
  uint64_t lane_map;       // member_step, member_step_reduce
  uint32_t keep_lanes;     // from_host with one stream to store: lanes that keep their bytes in memory
  bool host_order;         // of lines between load and store; else PIM order
  bool load_transposes;    // lines are transposed after loading
  bool store_transposes;   // lines are transposed before storing (rotated passes and member steps)
  bool non_temporal_rows;  // to_host: aligned rows are stored with non-temporal stores
  const Reducer *reducer;
  std::byte *item_buffers;  // kCallBufferBytes, aligned to 64
};

/// Runs of lines that are copied side by side. in null: stores zero lines; out null: loads only.
struct CopyCall {
  const std::byte *const *in;
  std::byte *const *out;
  uint32_t streams, banks, words;
  uint32_t turn_words;    // of one stream before the next
  uint32_t ahead_words;   // prefetch distance; 0: no prefetch
  uint32_t ahead_level;   // of the cache to fetch into, 1 or 2
  uint32_t prefetch_end;  // words before this one may be prefetched
};

struct Kernels {
  int isa;
  const char *name;
  bool (*is_supported)();  ///< whether this processor has its instructions
  void (*pass[kPasses])(const SweepCall &call);
  const Reducer *reducers[kTypes];  // [type code - PIDCOMM_INT8][op]; null functions where the operator is not defined
  /// Flushes `words` words of an unpaired bank (banks = 1) or of a bank pair (2) from the caches.
  void (*flush)(const std::byte *line, uint32_t words, uint32_t banks);
  /// Completes earlier loads, flushes and non-temporal stores.
  void (*fence)();
  /// The streaming limit.
  void (*copy)(const CopyCall &call);
};

/// The table of an ISA code. Requires: isa_available(isa).
const Kernels &kernels_of(int isa);

/// Whether the code is known and this machine can run it.
bool isa_available(int isa);

/// The available ISA of the highest level.
int best_isa();

}  // namespace pidcomm
