// Carries out the affine form of a plan: this file has the loops, the chunks of words and the addresses, and calls line kernels for the
// passes.
#include <algorithm>
#include <memory>

#include "base/geometry.h"
#include "exec/host_buffer.h"
#include "exec/host_pass.h"
#include "exec/parallel.h"
#include "exec/section_tables.h"

namespace pidcomm {

namespace {

/// The starts of the streams on one side (input or output) of an item, relative to the start of the item.
struct StreamStart {
  uint32_t egs;
  uint64_t bytes;
  bool is_missing = false;  // there is no PE
};

std::vector<StreamStart> starts_of(const Side &side, const Split &split) {
  std::vector<StreamStart> starts = {{0, 0}};
  for (const StreamLoop &loop : side.streams) {
    std::vector<StreamStart> next;
    next.reserve(starts.size() * loop.count);
    for (const StreamStart &start : starts)
      for (uint32_t i = 0; i < loop.count; ++i) next.push_back({start.egs + i * loop.egs, start.bytes + i * loop.bytes});
    starts = std::move(next);
  }
  if (side.row_lanes == 0) return starts;
  std::vector<StreamStart> rows;
  for (const StreamStart &start : starts)
    for (uint32_t pe = 0; pe < side.row_lanes; ++pe)
      rows.push_back({start.egs,
                      start.bytes + split.section.member_of(pe) * side.member_bytes + split.section.group_of(pe) * side.group_bytes,
                      pe >= split.section_pes()});
  return rows;
}

/// The start of an item: the entangled group and the byte at which its input and its output start.
struct Item {
  uint32_t in_eg, out_eg;
  uint64_t in_offset, out_offset;
};

/// Returns `item` moved to step `index` of a nest of loops (slowest loop first).
Item advanced(Item item, const std::vector<Loop> &loops, uint64_t index) {
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    const uint64_t i = index % loop->count;
    index /= loop->count;
    item.in_eg += static_cast<uint32_t>(i) * loop->in_egs;
    item.out_eg += static_cast<uint32_t>(i) * loop->out_egs;
    item.in_offset += i * loop->in_bytes;
    item.out_offset += i * loop->out_bytes;
  }
  return item;
}

/// The state of one thread: the pointers of the items in lockstep, and the buffers of these items.
class SweepWorker {
 public:
  SweepWorker(const HostPass &pass, const Sweep &sweep, const std::vector<StreamStart> &in_starts,
              const std::vector<StreamStart> &out_starts, const SectionTables &tables)
      : pass_(pass),
        sweep_(sweep),
        in_starts_(in_starts),
        out_starts_(out_starts),
        item_buffers_(kCallBufferBytes),
        section_buffer_(tables.buffer_bytes()) {
    const uint64_t lockstep = steps_of(sweep_.lockstep), sides = sweep_.exchange ? 2 : 1;
    for (uint64_t i = 0; i < lockstep; ++i) pointers_.emplace_back(in_starts.size() * sides, out_starts.size() * sides);
    for (const Pointers &pointers : pointers_) items_.push_back({pointers.in.data(), pointers.out.data()});
    call_.items = items_.data();
    call_.item_count = static_cast<uint32_t>(items_.size());
    call_.out_pair_banks = sweep_.out.pair_banks;
    call_.lane_mask = sweep_.lane_mask;
    call_.lane_map = sweep_.lane_map;
    call_.host_order = sweep.host_order;
    call_.load_transposes = sweep.host_order && sweep.in.space == Space::mram;
    call_.store_transposes = sweep.host_order && sweep.out.space == Space::mram;
    call_.reducer = reducer_of(pass.kernels, pass.plan);
    call_.non_temporal_rows = stores_rows_non_temporally(pass.plan);
    call_.item_buffers = item_buffers_.data();
    call_.keep_lanes = tables.keep_lanes();
    call_.merge = tables.merge();
    call_.rows = tables.rows();
    call_.section_buffer = section_buffer_.data();
  }

  std::size_t buffer_bytes() const { return item_buffers_.size() + section_buffer_.size(); }

  /// Carries out words [first, last) of every item in one step of the outer loops.
  void run(const Item &start, uint64_t first, uint64_t last) {
    const uint64_t ordered = steps_of(sweep_.ordered);
    for (uint64_t o = 0; o < ordered; ++o) {
      const Item item = advanced(start, sweep_.ordered, sweep_.ordered_downwards ? ordered - 1 - o : o);
      if (sweep_.exchange && item.in_eg > item.out_eg) continue;
      for (uint64_t word = first; word < last;) word += run_chunk(item, word, last);
    }
  }

 private:
  struct Pointers {
    std::vector<const std::byte *> in;
    std::vector<std::byte *> out;
    uint32_t in_count, out_count;
    Pointers(std::size_t ins, std::size_t outs) : in(ins), out(outs), in_count(0), out_count(0) {}
  };

  /// Carries out the words from `word` to the first end of a run in any stream, or to `last`. Returns the number of these words.
  uint32_t run_chunk(const Item &start, uint64_t word, uint64_t last) {
    uint32_t run_words = static_cast<uint32_t>(std::min<uint64_t>(sweep_.words - word, kRunWords));
    for (std::size_t i = 0; i < pointers_.size(); ++i) point(pointers_[i], advanced(start, sweep_.lockstep, i), word, run_words);
    call_.in_count = pointers_.front().in_count;
    call_.out_count = pointers_.front().out_count;
    const uint32_t words = static_cast<uint32_t>(std::min<uint64_t>(last - word, run_words));
    call_.prefetch_end = run_words;
    call_.words = words;
    call_.first_words = first_step_words();
    pass_.kernels.pass[static_cast<int>(sweep_.pass)](call_);
    return words;
  }

  /// Returns the number of words in the first step of a chunk, so that all later steps start at a line boundary of host rows.
  uint32_t first_step_words() const {
    const void *row = sweep_.in.space == Space::host    ? static_cast<const void *>(items_[0].in[0])
                      : sweep_.out.space == Space::host ? static_cast<const void *>(items_[0].out[0])
                                                        : nullptr;
    return row == nullptr ? kStepWords : words_to_line(row);
  }

  void point(Pointers &pointers, const Item &item, uint64_t word, uint32_t &run_words) {
    pointers.in_count = pointers.out_count = 0;
    const auto add = [&](const Side &side, const std::vector<StreamStart> &starts, uint32_t eg, uint64_t offset, auto &list,
                         uint32_t &count) {
      for (const StreamStart &start : starts)
        list[count++] = start.is_missing ? nullptr : pointer_to(side, eg + start.egs, offset + start.bytes + word * kWordBytes, run_words);
    };
    add(sweep_.in, in_starts_, item.in_eg, item.in_offset, pointers.in, pointers.in_count);
    add(sweep_.out, out_starts_, item.out_eg, item.out_offset, pointers.out, pointers.out_count);
    if (sweep_.exchange && item.in_eg != item.out_eg) {  // the twin item reads the lines that this item writes, and the reverse
      add(sweep_.in, in_starts_, item.out_eg, item.out_offset, pointers.in, pointers.in_count);
      add(sweep_.out, out_starts_, item.in_eg, item.in_offset, pointers.out, pointers.out_count);
    }
  }

  std::byte *pointer_to(const Side &side, uint32_t eg, uint64_t byte, uint32_t &run_words) const {
    if (side.space == Space::host) return pass_.host + byte;
    if (side.space == Space::host_lines) return pass_.host_lines.line(eg, byte / kWordBytes);
    const LinePosition position = position_of(pass_.eg_base[eg], byte / kWordBytes);
    run_words = std::min(run_words, position.run_words);
    return position.line;
  }

  const HostPass &pass_;
  const Sweep &sweep_;
  const std::vector<StreamStart> &in_starts_, &out_starts_;
  std::vector<Pointers> pointers_;
  std::vector<SweepItem> items_;
  HostBuffer item_buffers_, section_buffer_;
  SweepCall call_{};
};

}  // namespace

uint64_t run_sweep(const HostPass &pass, const Sweep &sweep) {
  const std::vector<StreamStart> in_starts = starts_of(sweep.in, sweep.split), out_starts = starts_of(sweep.out, sweep.split);
  const SectionTables tables(pass.plan, sweep);
  const Item origin = {sweep.in.eg, sweep.out.eg, sweep.in.offset, sweep.out.offset};
  // A unit of work is one step of the outer loops on one piece of the words. There are enough units of work to give all threads equal
  // shares.
  const uint64_t outer = steps_of(sweep.outer), pieces = pieces_of(sweep, pass.threads);
  const uint64_t chunks = (sweep.words + kShareWords - 1) / kShareWords;
  // Allocate all memory before the first byte moves.
  const int threads = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(pass.threads), outer * pieces));
  std::vector<std::unique_ptr<SweepWorker>> workers;
  for (int thread = 0; thread < threads; ++thread)
    workers.push_back(std::make_unique<SweepWorker>(pass, sweep, in_starts, out_starts, tables));
  WorkQueue queue(outer * pieces, threads);
  run_threads(threads, [&](int thread) {
    SweepWorker &worker = *workers[static_cast<std::size_t>(thread)];
    queue.each(thread, [&](uint64_t unit) {
      const uint64_t piece = unit % pieces;
      const uint64_t first = chunks * piece / pieces * kShareWords;
      const uint64_t last = std::min(chunks * (piece + 1) / pieces * kShareWords, sweep.words);
      worker.run(advanced(origin, sweep.outer, unit / pieces), first, last);
    });
    pass.kernels.fence();  // complete non-temporal stores before the PEs own the MRAM again
  });
  return workers.front()->buffer_bytes() * workers.size();
}

}  // namespace pidcomm
