#include "exec/sweep_pass.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/geometry.h"
#include "exec/host_buffer.h"
#include "exec/lines.h"
#include "exec/parallel.h"
#include "exec/prepared_sweep.h"
#include "exec/reducer.h"
#include "line_kernels/tuning.h"

namespace pidcomm {

namespace {

/// Whether the caches cannot hold the bytes that a plan reads and writes. Then they keep few lines
/// of the host rows between two calls, and other stores would load each line from memory.
bool stores_rows_non_temporally(const Plan &plan) {
  constexpr uint64_t kCacheBytes = uint64_t{16} << 20;
  return plan.in_pe_bytes * plan.cube.pes + plan.out_row_bytes * plan.grouping.groups >=
         kCacheBytes;
}

/// Returns the number of words (1 to 8) from `row` to the next line boundary, or 8 if `row` is not
/// aligned to a word.
uint32_t words_to_line(const void *row) {
  const uint64_t past_bytes = reinterpret_cast<uintptr_t>(row) % kLineBytes;
  return past_bytes % kWordBytes == 0
             ? static_cast<uint32_t>((kLineBytes - past_bytes) / kWordBytes)
             : kStepWords;
}

/// The units of work of a sweep. A unit is one batch on one range of words. There are enough units
/// to give all threads equal shares.
class Units {
 public:
  struct Unit {
    uint64_t batch, first_word, last_word;
  };

  Units(const PreparedSweep &prepared, int threads)
      : prepared_(prepared),
        pieces_(pieces_of(prepared.batches(), prepared.sweep().words, threads)) {}

  uint64_t count() const { return prepared_.batches() * pieces_.count; }
  Unit at(uint64_t number) const {
    const uint64_t piece = number % pieces_.count;
    return {number / pieces_.count, pieces_.start_of(piece),
            std::min(pieces_.start_of(piece + 1), pieces_.words)};
  }

 private:
  const PreparedSweep &prepared_;
  const Pieces pieces_;
};

/// Words of a unit, up to the first end of a run in any stream, with the pointers of all items in
/// lockstep.
class Chunk {
 public:
  /// The place of a chunk: its unit, the iteration of the ordered loops, and the first word.
  struct Place {
    uint64_t unit, iteration, word;
    bool operator==(const Place &) const = default;
  };

  Chunk(const HostPass &pass, const PreparedSweep &prepared, const Units &units)
      : pass_(pass), prepared_(prepared), sweep_(prepared.sweep()), units_(units) {
    const uint64_t sides = sweep_.exchange ? 2 : 1, lockstep = iterations_of(sweep_.lockstep);
    for (uint64_t i = 0; i < lockstep; ++i) lockstep_.push_back(advanced({}, sweep_.lockstep, i));
    for (uint64_t i = 0; i < lockstep * prepared.largest_batch(); ++i) {
      in_.emplace_back(prepared.in_streams() * sides);
      out_.emplace_back(prepared.out_streams() * sides);
      items_.push_back({in_.back().data(), out_.back().data()});
    }
  }

  /// Forgets the pointers, because addresses have changed.
  void forget_place() { place_ = kNoPlace; }

  /// Moves the chunk to a place. Does nothing if the chunk is there.
  void move_to(const Place &place) {
    if (place == place_) return;
    place_ = place;
    unit_ = units_.at(place.unit);
    item_count_ = 0;
    const uint64_t iteration =
        sweep_.ordered_downwards ? ordered_iterations_ - 1 - place.iteration : place.iteration;
    run_words_ = static_cast<uint32_t>(std::min<uint64_t>(sweep_.words - place.word, kRunWords));
    for (uint32_t m = 0; m < prepared_.batch_size(unit_.batch); ++m) {
      const auto [start, sub_item] = prepared_.item(unit_.batch, m);
      keep_lanes_ = sub_item->keep_lanes;
      part_ = sub_item->part;
      const ItemStart first = advanced(start, sweep_.ordered, iteration);
      for (const ItemStart &more : lockstep_)
        point({first.in_eg + more.in_eg, first.out_eg + more.out_eg,
               first.in_offset + more.in_offset, first.out_offset + more.out_offset},
              *sub_item);
    }
    words_ = static_cast<uint32_t>(std::min<uint64_t>(unit_.last_word - place.word, run_words_));
  }

  /// Returns the place of the chunk after this one, with unit units.count() after the last chunk.
  Place next() const {
    Place next = {place_.unit, place_.iteration, place_.word + words_};
    if (next.word < unit_.last_word) return next;
    if (++next.iteration == ordered_iterations_) {
      next.iteration = 0;
      if (++next.unit == units_.count()) return next;
    }
    next.word = units_.at(next.unit).first_word;
    return next;
  }

  /// Adds the chunk to the arguments of a pass.
  void add_to(SweepCall &call) const {
    call.items = items_.data();
    call.item_count = item_count_;
    call.in_count = in_count_;
    call.out_count = out_count_;
    call.keep_lanes = keep_lanes_;
    if (part_ != nullptr) {
      call.merge = &part_->merge;
      call.rows = &part_->rows;
    }
    call.prefetch_end = run_words_;
    call.words = words_;
    call.first_words = first_step_words();
  }
  /// Returns what the call before may prefetch.
  NextCall as_next() const {
    return {items_.data(), is_of_twin_ ? 0 : item_count_, in_count_, run_words_};
  }

  /// Whether the words of this chunk follow those of a chunk before, and both have a step or more.
  bool follows(const Chunk &before) const {
    return place_.unit == before.place_.unit && place_.iteration == before.place_.iteration &&
           words_ >= kStepWords && before.words_ >= kStepWords;
  }

  /// Whether the twin item moves the data of this chunk; see Sweep::exchange.
  bool is_of_twin() const { return is_of_twin_; }

 private:
  /// Returns the number of words in the first step of a chunk, so that all later steps start at a
  /// line boundary of host rows.
  uint32_t first_step_words() const {
    const void *row = sweep_.in.space == Space::host    ? static_cast<const void *>(in_[0][0])
                      : sweep_.out.space == Space::host ? static_cast<const void *>(out_[0][0])
                                                        : nullptr;
    return row == nullptr ? kStepWords : words_to_line(row);
  }

  void point(const ItemStart &item, const SubItem &sub_item) {
    std::vector<const std::byte *> &in = in_[item_count_];
    std::vector<std::byte *> &out = out_[item_count_];
    in_count_ = out_count_ = 0;
    const auto add = [&](const Side &side, const std::vector<StreamStart> &starts, uint32_t eg,
                         uint64_t offset, auto &list, uint32_t &count) {
      const uint64_t begin = offset + place_.word * kWordBytes;
      auto *to = list.data() + count;
      count += static_cast<uint32_t>(starts.size());
      if (side.space == Space::host) {
        for (const StreamStart &start : starts)
          *to++ = start.is_missing ? nullptr : pass_.host + begin + start.bytes;
        return;
      }
      // Blocks that follow each other in an entangled group often begin in one run.
      uint64_t run = ~uint64_t{0}, last_word = 0;
      uint32_t run_egs = 0;
      std::byte *run_line = nullptr;
      for (const StreamStart &start : starts) {
        const uint64_t word = (begin + start.bytes) / kWordBytes;
        if (word / kRunWords != run || start.egs != run_egs) {
          run = word / kRunWords;
          run_egs = start.egs;
          run_line = position_of(pass_.eg_base[eg + run_egs], run * kRunWords).line;
        }
        const uint64_t run_word = word % kRunWords;
        last_word = std::max(last_word, run_word);
        *to++ = run_line + run_word * kLineStride;
      }
      run_words_ = std::min(run_words_, static_cast<uint32_t>(kRunWords - last_word));
    };
    if (item_count_++ == 0) is_of_twin_ = sweep_.exchange && item.in_eg > item.out_eg;
    if (is_of_twin_) return;
    add(sweep_.in, sub_item.in, item.in_eg, item.in_offset, in, in_count_);
    add(sweep_.out, sub_item.out, item.out_eg, item.out_offset, out, out_count_);
    if (sweep_.exchange &&
        item.in_eg !=
            item.out_eg) {  // the twin item reads the lines that this item writes, and the reverse
      add(sweep_.in, sub_item.in, item.out_eg, item.out_offset, in, in_count_);
      add(sweep_.out, sub_item.out, item.in_eg, item.in_offset, out, out_count_);
    }
  }

  const HostPass &pass_;
  const PreparedSweep &prepared_;
  const Sweep &sweep_;
  const Units &units_;
  const uint64_t ordered_iterations_ = iterations_of(sweep_.ordered);
  std::vector<ItemStart> lockstep_;  // the iterations of the lockstep loops, relative to the first
  static constexpr Place kNoPlace{~uint64_t{0}, 0, 0};
  Place place_ = kNoPlace;
  Units::Unit unit_{};
  uint32_t words_ = 0, run_words_ = 0, keep_lanes_ = 0;
  uint32_t item_count_ = 0, in_count_ = 0, out_count_ = 0;
  bool is_of_twin_ = false;
  const SectionPart *part_ = nullptr;
  std::vector<std::vector<const std::byte *>> in_;  // by item
  std::vector<std::vector<std::byte *>> out_;
  std::vector<SweepItem> items_;
};

/// The state of one thread: the chunk that it moves, chunks after it, and the buffers of the items.
class SweepWorker {
 public:
  /// chunks: the number of chunks that keep their pointers, at least 2.
  SweepWorker(const HostPass &pass, const PreparedSweep &prepared, const Units &units,
              uint64_t chunks)
      : pass_(prepared.sweep().pass),
        over_ranks_(prepared.loads_from_ranks()),
        function_(pass.kernels.pass[static_cast<int>(pass_)]),
        units_(units),
        item_buffers_(kCallBufferBytes),
        section_buffer_(prepared.tables().buffer_bytes()),
        finish_(finish_of(pass.plan, pass.plan.reduces ? pass.plan.grouping.group_pes : 1)) {
    chunks_.reserve(chunks);
    for (uint64_t chunk = 0; chunk < chunks; ++chunk) chunks_.emplace_back(pass, prepared, units);
    const Sweep &sweep = prepared.sweep();
    call_.out_pair_banks = sweep.out.pair_banks;
    call_.rank_members = prepared.rank_members();
    call_.lane_mask = sweep.lane_mask;
    call_.lane_map = sweep.lane_map;
    call_.host_order = sweep.host_order;
    call_.load_transposes = sweep.host_order && sweep.in.space == Space::mram;
    call_.store_transposes = sweep.host_order && sweep.out.space == Space::mram;
    call_.accumulator = accumulator_of(pass.kernels, pass.plan);
    call_.reducer = reducer_of(pass.kernels, pass.plan);
    call_.finish = finish_ ? &*finish_ : nullptr;
    call_.non_temporal_rows = stores_rows_non_temporally(pass.plan);
    call_.item_buffers = item_buffers_.data();
    call_.section_buffer = section_buffer_.data();
  }

  std::size_t buffer_bytes() const { return item_buffers_.size() + section_buffer_.size(); }

  void forget_places() {
    for (Chunk &chunk : chunks_) chunk.forget_place();
  }

  /// Begins a run. If one thread repeats a run, its chunks are in the same order.
  void start() {
    at_ = 0;
    call_.is_followed = false;
    call_.tuning = tuning_of(pass_, over_ranks_);
  }

  /// Carries out one unit of work.
  void run(uint64_t unit) {
    for (Chunk::Place place = {unit, 0, units_.at(unit).first_word}; place.unit == unit;) {
      Chunk &chunk = chunks_[at_];
      chunk.move_to(place);
      place = chunk.next();
      at_ = (at_ + 1) % chunks_.size();
      if (chunk.is_of_twin()) continue;
      call_.next = {};
      call_.follows = call_.is_followed;
      call_.is_followed = false;
      if (place.unit < units_.count()) {
        chunks_[at_].move_to(place);
        call_.next = chunks_[at_].as_next();
        call_.is_followed = chunks_[at_].follows(chunk);
      }
      chunk.add_to(call_);
      function_(call_);
    }
  }

 private:
  const Pass pass_;
  const bool over_ranks_;
  void (*const function_)(const SweepCall &call);
  const Units &units_;
  std::vector<Chunk> chunks_;  // a ring
  std::size_t at_ = 0;
  HostBuffer item_buffers_, section_buffer_;
  const std::optional<Finish> finish_;
  SweepCall call_{};
};

}  // namespace

struct SweepRun::State {
  State(const HostPass &given, const PreparedSweep &prepared, uint64_t chunks)
      : eg_base(given.eg_base),
        pass{given.plan, given.kernels, eg_base, given.host, nullptr, given.threads},
        units(prepared, pass.threads) {
    const uint64_t threads = std::min<uint64_t>(static_cast<uint64_t>(pass.threads), units.count());
    for (uint64_t thread = 0; thread < threads; ++thread)
      workers.push_back(std::make_unique<SweepWorker>(pass, prepared, units, chunks));
  }

  /// Uses the addresses of a pass.
  void move_to(const HostPass &given) {
    if (given.host == pass.host && given.eg_base == eg_base) return;
    eg_base = given.eg_base;
    pass.host = given.host;
    for (const std::unique_ptr<SweepWorker> &worker : workers) worker->forget_places();
  }

  std::vector<std::byte *> eg_base;
  HostPass pass;  // with the eg_base of this object; sweeps do not use `buffer`
  const Units units;
  std::vector<std::unique_ptr<SweepWorker>> workers;  // one per thread
};

SweepRun::SweepRun(const HostPass &pass, const PreparedSweep &prepared, uint64_t chunks)
    : state_(std::make_unique<State>(pass, prepared, chunks)) {}
SweepRun::~SweepRun() = default;

uint64_t SweepRun::run(const HostPass &pass) {
  state_->move_to(pass);
  const auto &workers = state_->workers;
  for (const std::unique_ptr<SweepWorker> &worker : workers) worker->start();
  const int threads = static_cast<int>(workers.size());
  const uint64_t units = state_->units.count();
  if (threads == 1) {
    for (uint64_t unit = 0; unit < units; ++unit) workers.front()->run(unit);
    pass.kernels.fence();
  } else {
    WorkQueue queue(units, threads);
    run_threads(threads, [&](int thread) {
      queue.each(thread,
                 [&](uint64_t unit) { workers[static_cast<std::size_t>(thread)]->run(unit); });
      pass.kernels.fence();  // complete non-temporal stores before the PEs own the MRAM again
    });
  }
  return workers.front()->buffer_bytes() * workers.size();
}

}  // namespace pidcomm
