#include "exec/fold_pass.h"

#include <array>
#include <vector>

#include "base/geometry.h"
#include "exec/line_rows.h"
#include "exec/parallel.h"
#include "exec/row_fold.h"

namespace pidcomm {

namespace {

/// The buffers of one thread: rows of the lanes of a batch, partial results of the groups of a set,
/// rows of results, rows of lanes that keep their bytes, and the buffer of the passes.
struct Buffers {
  // Rows a power of two apart would map to the same sets of the first-level cache.
  static uint64_t spaced(uint64_t bytes) {
    return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes + kLineBytes;
  }

  Buffers(const Plan &plan, const FoldForm &form)
      : row_bytes(spaced(form.chunk_words * kWordBytes)),
        partial_bytes(spaced(plan.fold->partial_bytes(form.chunk_words * kWordBytes))),
        partials(uint64_t{form.batch_egs} * kLanes * row_bytes),
        results(partials + form.groups * partial_bytes),
        kept(results + form.result_rows * row_bytes),
        calls(kept + kLanes * row_bytes),
        bytes(calls + LineRows::kBufferBytes) {}

  uint64_t row_bytes, partial_bytes;        // from row to row
  uint64_t partials, results, kept, calls;  // where they begin; rows begin at 0
  uint64_t bytes;
};

/// Works on one chunk of words of a set after another.
class FoldWorker {
 public:
  FoldWorker(const HostPass &pass, const FoldForm &form, std::byte *base)
      : pass_(pass),
        plan_(pass.plan),
        form_(form),
        fold_(*pass.plan.fold),
        row_fold_(pass.plan, pass.kernels),
        buffers_(pass.plan, form),
        base_(base),
        lines_(pass, base + buffers_.calls),
        is_loaded_(form.batch_egs) {}

  uint64_t lines_loaded() const { return lines_.lines_loaded(); }

  void run(const FoldSet &set, uint64_t chunk) {
    first_word_ = chunk * form_.chunk_words;
    words_ = static_cast<uint32_t>(
        std::min<uint64_t>(form_.chunk_words, plan_.block_bytes / kWordBytes - first_word_));
    bytes_ = words_ * kWordBytes;
    if (plan_.in.per_member)
      reduce_scatter(set);
    else if (fold_.scans())
      scan(set);
    else
      reduce(set);
  }

 private:
  std::byte *row(uint32_t number) const { return base_ + number * buffers_.row_bytes; }
  std::byte *partials(uint32_t group) const {
    return base_ + buffers_.partials + group * buffers_.partial_bytes;
  }
  std::byte *result(uint32_t number) const {
    return base_ + buffers_.results + number * buffers_.row_bytes;
  }

  /// Loads block `block` of the PEs that `wants` accepts. Calls add(pe, row) for each of these, in
  /// member order, and done(batch) at the end of each batch.
  template <class Wants, class Add, class Done>
  void each_row(const FoldSet &set, uint64_t block, const Wants &wants, const Add &add,
                const Done &done) {
    const uint64_t window = plan_.src / kWordBytes,
                   word = window + block * (plan_.block_bytes / kWordBytes) + first_word_;
    for (const FoldSet::Batch &batch : set.batches) {
      std::fill(is_loaded_.begin(), is_loaded_.end(), false);
      for (uint32_t i = 0; i < batch.pes; ++i) {
        const uint32_t pe = set.order[batch.first_pe + i], eg = pe / kLanes,
                       place = eg - batch.first_eg;  // in the batch
        if (!wants(set.pes[pe])) continue;
        if (!is_loaded_[place]) {
          lines_.load(set.egs[eg], word, words_, row(place * kLanes), buffers_.row_bytes,
                      window + plan_.in_pe_bytes / kWordBytes);
          if (eg + 1 < set.egs.size()) lines_.prefetch(set.egs[eg + 1], word, words_);
          is_loaded_[place] = true;
        }
        add(set.pes[pe], row(place * kLanes + pe % kLanes));
      }
      done(batch);
    }
  }
  static void nothing(const FoldSet::Batch &) {}

  void combine(const FoldPe &pe, const std::byte *row) const {
    row_fold_.add(partials(pe.group), row, bytes_, pe.member == 0);
  }

  /// Stores the rows row_of(pe) of an entangled group of a set.
  template <class RowOf>
  void store(const FoldSet &set, uint32_t eg, const RowOf &row_of) {
    const uint64_t word = plan_.dst / kWordBytes + first_word_;
    std::array<const std::byte *, kLanes> rows{};
    bool has_all = true;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t pe = eg * kLanes + lane;
      if (set.pes[pe].group == kNoGroup)
        has_all = false;
      else
        rows[lane] = row_of(pe);
    }
    if (!has_all) {
      std::byte *const kept = base_ + buffers_.kept;
      lines_.load(set.egs[eg], word, words_, kept, buffers_.row_bytes, word + words_);
      for (uint32_t lane = 0; lane < kLanes; ++lane)
        if (rows[lane] == nullptr) rows[lane] = kept + lane * buffers_.row_bytes;
    }
    lines_.store(set.egs[eg], word, words_, rows.data());
  }

  void reduce(const FoldSet &set) {
    each_row(
        set, 0, [](const FoldPe &) { return true; },
        [&](const FoldPe &pe, const std::byte *row) { combine(pe, row); }, nothing);
    const uint32_t members = plan_.grouping.group_pes;
    if (plan_.out.space == Space::host) {
      for (uint32_t g = 0; g < set.groups.size(); ++g)
        row_fold_.store(
            pass_.host + set.groups[g] * plan_.row_stride_bytes + first_word_ * kWordBytes,
            partials(g), bytes_, members);
      return;
    }
    if (!row_fold_.stores_partials())
      for (uint32_t g = 0; g < set.groups.size(); ++g)
        row_fold_.store(result(g), partials(g), bytes_, members);
    for (uint32_t eg = 0; eg < set.egs.size(); ++eg)
      store(set, eg, [&](uint32_t pe) {
        const uint32_t group = set.pes[pe].group;
        return row_fold_.stores_partials() ? partials(group) : result(group);
      });
  }

  void scan(const FoldSet &set) {
    const bool has_own = fold_.result == Fold::Result::up_to_own;
    each_row(
        set, 0, [](const FoldPe &) { return true; },
        [&](const FoldPe &pe, std::byte *row) {
          if (!has_own && pe.member != 0)
            row_fold_.store(result(0), partials(pe.group), bytes_, pe.member);
          combine(pe, row);
          if (has_own)
            row_fold_.store(row, partials(pe.group), bytes_, pe.member + 1);
          else if (pe.member != 0)
            std::memcpy(row, result(0), bytes_);
          else
            fill_row(row, bytes_, fold_.identity);
        },
        [&](const FoldSet::Batch &batch) {
          for (uint32_t eg = batch.first_eg; eg < batch.first_eg + batch.egs; ++eg)
            store(set, eg, [&](uint32_t pe) { return row(pe - batch.first_eg * kLanes); });
        });
  }

  /// Makes the results of one entangled group after another. In place, keeps all results until the
  /// end, because they replace block 0.
  void reduce_scatter(const FoldSet &set) {
    const auto egs = static_cast<uint32_t>(set.egs.size());
    const bool is_in_place = plan_.src == plan_.dst;
    for (uint32_t eg = 0; eg < egs; ++eg) {
      const uint32_t first_result = is_in_place ? eg * kLanes : 0;
      reduce_to(set, eg, first_result);
      if (!is_in_place) store_results(set, eg, first_result);
    }
    for (uint32_t eg = 0; is_in_place && eg < egs; ++eg) store_results(set, eg, eg * kLanes);
  }

  void reduce_to(const FoldSet &set, uint32_t eg, uint32_t first_result) {
    const FoldPe *const own = &set.pes[eg * kLanes];
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t block = own[lane].member;
      const auto is_for = [&](uint32_t other) {
        return own[other].group != kNoGroup && own[other].member == block;
      };
      const auto is_earlier = [&] {
        for (uint32_t other = 0; other < lane; ++other)
          if (is_for(other)) return true;
        return false;
      };
      if (own[lane].group == kNoGroup || is_earlier()) continue;
      const auto wants = [&](const FoldPe &pe) {
        for (uint32_t other = lane; other < kLanes; ++other)
          if (is_for(other) && own[other].group == pe.group) return true;
        return false;
      };
      each_row(
          set, block, wants, [&](const FoldPe &pe, const std::byte *row) { combine(pe, row); },
          nothing);
      for (uint32_t other = lane; other < kLanes; ++other)
        if (is_for(other))
          row_fold_.store(result(first_result + other), partials(own[other].group), bytes_,
                          plan_.grouping.group_pes);
    }
  }

  void store_results(const FoldSet &set, uint32_t eg, uint32_t first_result) {
    store(set, eg, [&](uint32_t pe) { return result(first_result + pe % kLanes); });
  }

  const HostPass &pass_;
  const Plan &plan_;
  const FoldForm &form_;
  const Fold &fold_;
  const RowFold row_fold_;
  const Buffers buffers_;
  std::byte *const base_;
  LineRows lines_;
  std::vector<bool> is_loaded_;  // by entangled group of a batch
  uint64_t first_word_ = 0;      // of the chunk, in a block
  uint32_t words_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

uint64_t fold_buffer_bytes(const Plan &plan, const FoldForm &form, int threads) {
  return static_cast<uint64_t>(threads) * Buffers(plan, form).bytes;
}

void run_fold(const HostPass &pass, const FoldForm &form, pidcomm_trace &trace) {
  std::vector<FoldWorker> workers;
  const uint64_t bytes = Buffers(pass.plan, form).bytes;
  for (int thread = 0; thread < pass.threads; ++thread)
    workers.emplace_back(pass, form, pass.buffer + static_cast<uint64_t>(thread) * bytes);
  WorkQueue queue(form.sets.size() * form.chunks, pass.threads);
  run_threads(pass.threads, [&](int thread) {
    queue.each(thread, [&](uint64_t unit) {
      // Neighbouring sets take turns, because the lines of both banks of a pair are adjacent.
      const uint64_t pair = unit / (2 * uint64_t{form.chunks}) * 2,
                     sets = std::min<uint64_t>(2, form.sets.size() - pair),
                     rest = unit - pair * form.chunks;
      workers[static_cast<std::size_t>(thread)].run(form.sets[pair + rest % sets], rest / sets);
    });
    pass.kernels.fence();  // complete non-temporal stores before the PEs own the MRAM again
  });
  for (const FoldWorker &worker : workers)
    trace.mram_bytes_read += worker.lines_loaded() * kLineBytes;
}

}  // namespace pidcomm
