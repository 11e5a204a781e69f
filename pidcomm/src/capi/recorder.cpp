// The functions of recorder.h. The text of a record is made without allocations and locks, because
// signal handlers write it.
#include "pidcomm/recorder.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/recorder.h"
#include "base/sized.h"
#include "capi/guarded.h"
#include "exec/clock.h"
#include "plan/request.h"

namespace {

using namespace pidcomm;

/// A text of limited length; drops what does not fit.
class Line {
 public:
  Line &operator<<(const char *text) {
    while (*text != '\0' && length_ < sizeof text_) text_[length_++] = *text++;
    return *this;
  }
  Line &operator<<(uint64_t value) {
    char digits[21] = {};
    char *begin = digits + sizeof digits - 1;
    do *--begin = static_cast<char>('0' + value % 10);
    while ((value /= 10) != 0);
    return *this << begin;
  }
  /// Adds a time of at least 0 with three digits or more.
  Line &seconds(double value) {
    const bool is_short = value < 1e-3, is_long = value >= 1;
    const double unit = is_short ? 1e-6 : is_long ? 1 : 1e-3;
    const auto thousandths = static_cast<uint64_t>(std::min(value / unit * 1e3 + 0.5, 1e18));
    const char digits[] = {'.', static_cast<char>('0' + thousandths / 100 % 10),
                           static_cast<char>('0' + thousandths / 10 % 10),
                           static_cast<char>('0' + thousandths % 10), '\0'};
    return *this << thousandths / 1000 << digits << (is_short ? " us" : is_long ? " s" : " ms");
  }
  std::string_view text() const { return {text_, length_}; }

 private:
  char text_[1024];
  std::size_t length_ = 0;
};

const char *text_of_state(int state) {
  switch (state) {
#define PIDCOMM_ROW(ENUM, code, text) \
  case code:                          \
    return text;
    PIDCOMM_CALL_STATES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    default:
      return "?";
  }
}

const char *known(const char *name) { return name == nullptr ? "?" : name; }

bool has_operator(int collective) {
  switch (collective) {
#define PIDCOMM_ROW(ENUM, code, name, op, ...) \
  case code:                                   \
    return op != 0;
    PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, ...) case code:
    PIDCOMM_SCANS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    return true;
    default:
      return false;
  }
}

void add_request(Line &line, const pidcomm_record &record) {
  line << (record.collective < 0 ? "a refused call" : known(name_of_collective(record.collective)));
  if (record.mask[0] != '\0')
    line << " " << record.mask << ", " << record.bytes << " bytes of "
         << known(name_of_type(record.type));
  if (has_operator(record.collective))
    line << ", " << (record.op < 0 ? "own operator" : known(name_of_op(record.op)));
  if (record.requests > 1)
    line << ", request " << record.request << " of a batch of " << record.requests;
}

/// Adds the phases that took time, which are the fields seconds_NAME of the trace.
void add_phases(Line &line, const pidcomm_trace &trace) {
  line << ", " << known(name_of_technique(trace.technique)) << " with "
       << known(name_of_isa(trace.isa));
  const char *before = " (";
  const auto add = [&](const char *name, auto value) {
    constexpr std::string_view kPrefix = "seconds_", kTotal = "seconds_total";
    if (!std::string_view(name).starts_with(kPrefix) || value <= 0 || name == kTotal) return;
    line << before << name + kPrefix.size() << " ";
    line.seconds(static_cast<double>(value));
    before = ", ";
  };
#define PIDCOMM_ROW(ctype, name, ...) add(#name, trace.name);
  PIDCOMM_TRACE_FIELDS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  if (*before == ',') line << ")";
}

Line line_of(const pidcomm_record &record) {
  Line line;
  line << "hypercube " << record.hypercube << " (" << record.shape << "), call " << record.call
       << ": ";
  add_request(line, record);
  line << ": " << text_of_state(record.state);
  if (record.awaited_hosts != 0) line << ", misses host " << record.awaited_host;
  if (record.awaited_hosts > 1) line << " and " << record.awaited_hosts - 1 << " more";
  line << ", ";
  line.seconds(record.elapsed_s);
  if (record.state == PIDCOMM_CALL_DONE && record.trace.technique != 0)
    add_phases(line, record.trace);
  if (record.state == PIDCOMM_CALL_FAILED)
    line << ", " << known(name_of_status(record.status)) << ": " << record.sentence;
  if (record.file != nullptr)
    line << ", " << record.file << ":" << static_cast<uint64_t>(record.line);
  return line;
}

void write_all(int file_descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file_descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

template <class Visit>
void each_record(const Visit &visit) {
  const double now_s = clock_s();
  pidcomm_record record{};
  while (next_record(&record, now_s)) visit(record);
}

void write_line(int file_descriptor, const pidcomm_record &record) {
  const Line line = line_of(record) << "\n";
  write_all(file_descriptor, line.text());
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
      Line line;
      line << "pidcomm: a call has not ended after ";
      write_all(file_descriptor_, (line.seconds(seconds_) << ":\n").text());
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
    const Line line = line_of(*record);
    *length = line.text().size();
    if (capacity == 0) return;
    const size_t copied = std::min(*length, capacity - 1);
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

void pidcomm_recorder_place(const char *file, int line) { set_call_place(file, line); }
