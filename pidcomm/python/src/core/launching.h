// Launches that Ctrl-C ends, for sets and streams.
#pragma once

#include <nanobind/nanobind.h>
#include <pidcomm/pidcomm.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "gil.h"
#include "status.h"

namespace core {

namespace nb = nanobind;

/// The bytes of a struct dpu_set_t, which other extension modules use to access a set.
inline nb::bytes bytes_of(const struct dpu_set_t &set) { return nb::bytes(&set, sizeof set); }

/// Functions that exist only on emulated DIMMs. Their argument is bytes_of(set).
using Stop = std::optional<nb::callable>;  // ends the launch of a set
using ExplainFault =
    std::optional<nb::callable>;  // returns a sentence about a faulting PE of a set

/// Ends the launch of a set, if `stop` exists. Needs the GIL.
inline void stop_launch(const Stop &stop, const struct dpu_set_t &set) {
  if (stop) (*stop)(bytes_of(set));
}

/// The thread that waits for launches or a stream on another thread.
class CallerThread {
 public:
  /// Returns the result of `work`, which runs on another thread. After Ctrl-C, calls end_work()
  /// with the GIL until the work has ended, and then throws KeyboardInterrupt. Requires a released
  /// GIL.
  template <class EndWork, class Work>
  auto run(const EndWork &end_work, const Work &work) {
    is_over_ = false;
    auto end = std::async(std::launch::async, [&] {
      const auto ends = [](CallerThread *own) {
        const std::scoped_lock lock(own->mutex_);
        own->is_over_ = true;
        own->changed_.notify_all();
      };
      const std::unique_ptr<CallerThread, decltype(ends)> guard(this, ends);
      return work();
    });
    std::optional<nb::python_error> interrupt;
    for (std::unique_lock lock(mutex_); !is_over_;) {
      changed_.wait_for(lock, std::chrono::milliseconds(50),
                        [&] { return is_over_ || function_ != nullptr; });
      if (is_over_) break;
      if (const auto *const function = std::exchange(function_, nullptr); function != nullptr) {
        lock.unlock();
        if (!interrupt) (*function)();
        lock.lock();
        has_called_ = true;
        changed_.notify_all();
        continue;
      }
      lock.unlock();
      {
        const gil::Held held;
        if (!interrupt && PyErr_CheckSignals() != 0) interrupt.emplace();
        if (interrupt) end_work();
      }
      lock.lock();
    }
    end.wait();
    if (interrupt) throw nb::python_error(std::move(*interrupt));
    return end.get();
  }

  /// The work calls it: runs a function on the thread of `run`, but not after Ctrl-C. The function
  /// must not throw.
  void call(const std::function<void()> &function) {
    std::unique_lock lock(mutex_);
    function_ = &function;
    has_called_ = false;
    changed_.notify_all();
    changed_.wait(lock, [&] { return has_called_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = true, has_called_ = false;
  const std::function<void()> *function_ = nullptr;  // the next one to run
};

}  // namespace core
