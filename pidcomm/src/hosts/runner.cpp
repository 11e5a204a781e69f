#include "hosts/runner.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "exec/clock.h"
#include "exec/flush.h"
#include "exec/parallel.h"
#include "exec/reducer.h"
#include "exec/trace_sum.h"

namespace pidcomm {

namespace {

constexpr uint64_t kCombineBytes = 65536;  // of a unit of work of Round::combines

/// Carries out one plan.
class Runner {
 public:
  Runner(const HostsPlan &plan, Executor &local, Link &link, const pidcomm_options *options,
         const Memories &memories)
      : plan_(plan),
        local_(local),
        link_(link),
        options_(local_options(plan, options)),
        memories_(memories) {}

  pidcomm_trace run(bool overlaps) {
    const bool has_local_work = plan_.pieces.size() > 1 || !plan_.meanwhile.empty();
    if (!overlaps || !has_local_work || !overlapped()) one_after_another();
    all(plan_.last);
    for (const bool is_send : {true, false})
      (is_send ? trace_.bytes_sent : trace_.bytes_received) = traffic_of(plan_, is_send).bytes;
    trace_.bytes_staged += plan_.window_bytes;
    trace_.seconds_exchange = seconds_exchange_;
    trace_.threads = std::max(trace_.threads, combine_threads_);
    return trace_;
  }

 private:
  void all(const std::vector<Local> &locals) {
    for (const Local &one : locals) {
      const auto read = pool_areas(plan_, one, false), written = pool_areas(plan_, one, true);
      pidcomm_trace trace{};
      use_pool(read, written,
               [&] { local_.run(local_request(plan_, one, memories_), &options_, trace); });
      add_trace(trace_, trace);
    }
  }

  void one_after_another() {
    for (const Piece &piece : plan_.pieces) {
      all(piece.before);
      exchange(piece);
      if (&piece == &plan_.pieces.front()) all(plan_.meanwhile);
      all(piece.after);
    }
  }

  /// Runs the local collectives on another thread, and the exchanges on this thread. Two pieces are
  /// under way at a time, because the buffers of pieces j and j + 2 are the same. Returns false if
  /// the system starts no thread.
  bool overlapped() {
    std::thread thread;
    try {
      thread = std::thread([this] { run_locals(); });
    } catch (const std::system_error &) {
      return false;
    }
    try {
      for (std::size_t j = 0; j < plan_.pieces.size() && wait_for(prepared_, j + 1); ++j) {
        exchange(plan_.pieces[j]);
        advance(exchanged_);
      }
    } catch (...) {
      stop(std::current_exception());
    }
    thread.join();
    if (error_) std::rethrow_exception(error_);
    return true;
  }

  void run_locals() {
    const std::vector<Piece> &pieces = plan_.pieces;
    try {
      for (std::size_t j = 0; j <= pieces.size(); ++j) {
        if (j < pieces.size()) {
          all(pieces[j].before);
          advance(prepared_);
        }
        if (j == std::min<std::size_t>(1, pieces.size() - 1)) all(plan_.meanwhile);
        if (j == 0) continue;
        if (!wait_for(exchanged_, j)) return;
        all(pieces[j - 1].after);
      }
    } catch (...) {
      stop(std::current_exception());
    }
  }

  void exchange(const Piece &piece) {
    const Stopwatch exchanging;
    for (const Round &round : piece.rounds) {
      std::vector<Transfer> transfers;
      for (const Message &message : round.messages) {
        const Area &area = message.area;
        transfers.push_back({message.host, message.is_send, memories_.at(area), area.rows,
                             area.bytes, area.stride});
      }
      if (round.syncs)
        link_.sync();
      else
        link_.exchange(transfers);
      for (const Combine &one : round.combines)
        if (!round.is_on_switch)
          use_pool(pool_areas(one, false), pool_areas(one, true), [&] { combine(one); });
        else if (plan_.host == 0)
          link_.reduce(reduction_of(one));
    }
    seconds_exchange_ += exchanging.seconds("exchange");
  }

  /// Runs a function that reads and writes areas of the pool.
  template <class Run>
  void use_pool(const std::vector<const Area *> &read, const std::vector<const Area *> &written,
                const Run &run) const {
    if (read.empty() && written.empty()) return run();
    const double begin = clock_s();
    flush(read);
    run();
    flush(written);
    const auto bytes_of = [](const std::vector<const Area *> &areas) {
      uint64_t bytes = 0;
      for (const Area *area : areas) bytes += area->size_bytes();
      return bytes;
    };
    link_.pay(begin, bytes_of(written), bytes_of(read));
  }

  void flush(const std::vector<const Area *> &areas) const {
    if (!link_.needs_flush()) return;
    for (const Area *area : areas)
      for (uint64_t row = 0; row < area->rows; ++row)
        flush_bytes(kernels_of(plan_.whole.options.isa), memories_.at(*area) + row * area->stride,
                    area->bytes);
  }

  /// The rows of all hosts in the pool, one after the other; see plan_pool.cpp.
  pidcomm_reduction reduction_of(const Combine &one) const {
    pidcomm_reduction reduction{};
    reduction.type = plan_.whole.type.code;
    reduction.op = plan_.whole.op;
    reduction.rows = static_cast<uint32_t>(1 + one.from.size());
    reduction.offset = one.into.offset;
    reduction.bytes = one.into.size_bytes();
    reduction.stride = one.from.front().offset - one.into.offset;
    return reduction;
  }

  void combine(const Combine &one) {
    const Options &options = plan_.whole.options;
    combine_threads_ = options.threads;
    const Reducer *const reducer =
        reducer_of(kernels_of(options.isa), plan_.whole);  // null if all of them are copies
    const uint64_t width = std::min(one.into.bytes, kCombineBytes),
                   columns = (one.into.bytes + width - 1) / width;
    WorkQueue queue(one.into.rows * columns, options.threads);
    run_threads(options.threads, [&](int thread) {
      queue.each(thread, [&](uint64_t unit) {
        const uint64_t row = unit / columns, first = unit % columns * width,
                       size = std::min(width, one.into.bytes - first);
        std::byte *const into = memories_.at(one.into) + one.into.row_offset(row) + first;
        bool is_copy = one.replaces;
        for (const Area &from : one.from) {
          const std::byte *const operand =
              memories_.at(from) + (from.rows == 1 ? row * one.into.bytes : from.row_offset(row)) +
              first;
          if (std::exchange(is_copy, false))
            std::memcpy(into, operand, size);
          else
            reducer->combine(into, operand, size);
        }
      });
    });
  }

  /// Waits until a counter has reached `count`. Returns false if the other thread has failed.
  bool wait_for(const std::size_t &counter, std::size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return counter >= count || error_; });
    return !error_;
  }
  void advance(std::size_t &counter) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++counter;
    changed_.notify_all();
  }
  void stop(std::exception_ptr error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
  }

  const HostsPlan &plan_;
  Executor &local_;
  Link &link_;
  const pidcomm_options options_;
  const Memories memories_;
  pidcomm_trace trace_{};  // of the thread that runs the local collectives
  double seconds_exchange_ = 0;
  int combine_threads_ = 0;
  std::mutex mutex_;  // guards all later members
  std::condition_variable changed_;
  std::size_t prepared_ = 0, exchanged_ = 0;  // pieces whose `before` and whose exchange have ended
  std::exception_ptr error_;
};

}  // namespace

pidcomm_options local_options(const HostsPlan &plan, const pidcomm_options *options) {
  pidcomm_options local = options == nullptr ? pidcomm_options{} : *options;
  local.scratch_offset = plan.options.scratch_offset;
  return local;
}

pidcomm_trace run_plan(const HostsPlan &plan, Executor &local, Link &link,
                       const pidcomm_options *options, const Memories &memories, bool overlaps) {
  return Runner(plan, local, link, options, memories).run(overlaps);
}

}  // namespace pidcomm
