// The functions of recorder.h.
#include "pidcomm/recorder.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "base/recorder.h"
#include "base/sized.h"
#include "capi/guarded.h"
#include "capi/record_text.h"
#include "capi/recorder.h"
#include "exec/clock.h"

namespace {

using namespace pidcomm;

template <class Visit>
void each_record(const Visit &visit) {
  const double now_s = clock_s();
  pidcomm_record record{};
  while (next_record(&record, now_s)) visit(record);
}

void write_line(int file_descriptor, const pidcomm_record &record) {
  write_all(file_descriptor, line_of(record).end_line().text());
}

/// A thread that reports the calls that take longer than some time.
class Watch {
 public:
  Watch(double seconds, int file_descriptor)
      : seconds_(seconds), file_descriptor_(file_descriptor), thread_([this] { run(); }) {}
  ~Watch() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Watch(const Watch &) = delete;
  Watch &operator=(const Watch &) = delete;

  /// Whether the thread is of this process; after fork, it is not.
  bool is_here() const { return process_ == getpid(); }

 private:
  void run() {
    const std::chrono::duration<double> pause(std::clamp(seconds_ / 8, 1e-3, 1.0));
    std::unique_lock<std::mutex> lock(mutex_);
    while (!changed_.wait_for(lock, pause, [this] { return is_over_; })) {
      try {
        report();
      } catch (const std::bad_alloc &) {  // the next pause tries again
      }
    }
  }
  void report() {
    std::set<std::pair<uint64_t, uint64_t>> late;
    bool has_new = false;
    each_record([&](const pidcomm_record &record) {
      if (record.state >= PIDCOMM_CALL_DONE || record.elapsed_s <= seconds_) return;
      late.emplace(record.hypercube, record.call);
      if (reported_.contains({record.hypercube, record.call})) return;
      TextLine line;
      line << "pidcomm: a call has not ended after ";
      write_all(file_descriptor_, (line.seconds(seconds_) << ":").end_line().text());
      write_line(file_descriptor_, record);
      has_new = true;
    });
    reported_ = std::move(late);
    if (!has_new) return;
    write_all(file_descriptor_, "pidcomm: the last calls:\n");
    pidcomm_recorder_write(file_descriptor_);
  }

  const double seconds_;
  const int file_descriptor_;
  const pid_t process_ = getpid();
  std::mutex mutex_;  // guards is_over_
  std::condition_variable changed_;
  bool is_over_ = false;
  std::set<std::pair<uint64_t, uint64_t>> reported_;  // hypercubes and calls
  std::thread thread_;
};

std::atomic<Watch *> current_watch = nullptr;

std::atomic<int> files[NSIG];  // of pidcomm_recorder_signal, by signal

/// Starts a watch. Its thread gets no signals of the process.
Watch *started(double seconds, int file_descriptor) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::unique_ptr<Watch> watch;
  try {
    watch = std::make_unique<Watch>(seconds, file_descriptor);
  } catch (const std::exception &) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (watch == nullptr)
    fail(PIDCOMM_ERR_MEMORY, "the system starts no thread that watches the calls");
  return watch.release();
}

}  // namespace

bool pidcomm::has_watch() { return current_watch != nullptr; }

int pidcomm_recorder_read(pidcomm_record *records, size_t capacity, size_t *count) {
  return guarded([&] {
    require(count, "count");
    if (capacity != 0) check_size(records, "records");
    size_t all = 0;
    each_record([&](const pidcomm_record &record) {
      if (all < capacity) records[all] = record;
      ++all;
    });
    *count = all;
  });
}

int pidcomm_record_text(const pidcomm_record *record, char *text, size_t capacity, size_t *length) {
  return guarded([&] {
    check_size(record, "record");
    require(length, "length");
    if (capacity != 0) require(text, "text");
    const TextLine line = line_of(*record);
    *length = line.text().size();
    if (capacity == 0) return;
    const size_t copied =
        *length < capacity ? *length : cut_before(line.text().data(), capacity - 1);
    std::memcpy(text, line.text().data(), copied);
    text[copied] = '\0';
  });
}

void pidcomm_recorder_write(int file_descriptor) {
  const int error = errno;  // of the code that a signal interrupts
  each_record([&](const pidcomm_record &record) { write_line(file_descriptor, record); });
  errno = error;
}

int pidcomm_recorder_watch(double seconds, int file_descriptor) {
  return guarded([&] {
    if (!(seconds >= 0 && seconds < 1e9))
      fail(PIDCOMM_ERR_ARGUMENT, "seconds (", seconds, ") must be at least 0 and below 1e9");
    Watch *const next = seconds == 0 ? nullptr : started(seconds, file_descriptor);
    std::unique_ptr<Watch> before(current_watch.exchange(next));
    if (before != nullptr && !before->is_here()) static_cast<void>(before.release());
  });
}

int pidcomm_recorder_signal(int number, int file_descriptor) {
  return guarded([&] {
    struct sigaction action{};
    action.sa_handler = [](int signal) { pidcomm_recorder_write(files[signal]); };
    action.sa_flags = SA_RESTART;
    const bool is_signal = number > 0 && number < NSIG;
    if (is_signal) files[number] = file_descriptor;
    if (!is_signal || sigaction(number, &action, nullptr) != 0)
      fail(PIDCOMM_ERR_ARGUMENT, "signal ", number, " cannot have a handler");
  });
}

void pidcomm_recorder_place(const char *file, int line) { set_call_place(file, line); }
