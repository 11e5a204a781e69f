#include "hosts/link.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/recorder.h"
#include "exec/clock.h"
#include "exec/flush.h"
#include "line_kernels/kernels.h"

namespace pidcomm {

namespace {

constexpr uint64_t kSegmentBytes = uint64_t{1} << 30;  // the transport's limit
// Short, so that segments travel while the emulated link sends others: at most this size, and at
// most this time on the link.
constexpr uint64_t kMostEmulatedBytes = uint64_t{1} << 20, kLeastEmulatedBytes = 4096;
constexpr double kEmulatedSeconds = 0.01;
constexpr std::size_t kInFlight = 4;  // segments per host and direction
constexpr double kShortestSleep = 20e-6, kLongestSleep = 500e-6;
constexpr double kSleepError = 100e-6;
constexpr uint64_t kAlignment = 64;

struct Segment {
  pidcomm_message message;
  double due = 0;  // when an emulated link has sent the segment
  void *posted = nullptr;
  bool is_done = false;
};

/// Cuts a message into segments of at most `limit` bytes: whole rows, or parts of a row. Sender and
/// receiver use the same rows and bytes, so they cut alike.
void cut_into(std::deque<Segment> &segments, const Transfer &transfer, uint64_t limit) {
  if (transfer.rows == 0 || transfer.bytes == 0) return;
  const uint64_t width = std::min(transfer.bytes, limit),
                 height = std::max<uint64_t>(limit / width, 1);
  for (uint64_t row = 0; row < transfer.rows; row += height)
    for (uint64_t at = 0; at < transfer.bytes; at += width) {
      const uint64_t rows = std::min(height, transfer.rows - row),
                     bytes = std::min(width, transfer.bytes - at);
      std::byte *const base = transfer.base + row * transfer.stride + at;
      segments.push_back({{transfer.host, transfer.is_send, base, rows, bytes,
                           rows == 1 ? bytes : transfer.stride}});
    }
}

std::string text_of(const std::vector<uint32_t> &hosts) {
  std::string text;
  for (const uint32_t host : hosts) text += (text.empty() ? "" : ", ") + std::to_string(host);
  return text;
}

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace

/// The segments of an exchange: a queue for each host and direction.
class Link::Queues {
 public:
  Queues(Link &link, const std::vector<Transfer> &transfers)
      : link_(link), queues_(2 * std::size_t{link.hosts()}) {
    const uint64_t limit = is_limited() ? emulated_segment_bytes() : kSegmentBytes;
    for (const Transfer &transfer : transfers)
      cut_into(queue_of(transfer.host, transfer.is_send), transfer, limit);
    if (is_limited()) schedule(transfers);
  }
  ~Queues() {
    for (std::deque<Segment> &queue : queues_)
      for (Segment &segment : queue)
        if (segment.posted != nullptr)
          link_.transport_.abandon(link_.transport_.context, segment.posted);
  }
  Queues(const Queues &) = delete;
  Queues &operator=(const Queues &) = delete;

  bool is_empty() const {
    return std::all_of(queues_.begin(), queues_.end(),
                       [](const auto &queue) { return queue.empty(); }) &&
           clock_s() >= link_.in_free_;
  }
  /// Posts segments and removes segments that are done. Returns whether one was done.
  bool poll() {
    bool has_progress = false;
    for (std::deque<Segment> &queue : queues_) {
      for (std::size_t i = 0; i < std::min(queue.size(), kInFlight); ++i)
        advance(queue[i], has_progress);
      while (!queue.empty() && queue.front().is_done) queue.pop_front();
    }
    return has_progress;
  }
  /// Whether a segment waits for another host; the others wait only for the emulated link.
  bool waits_for_host() const {
    return std::any_of(queues_.begin(), queues_.end(), [](const auto &queue) {
      return !queue.empty() && queue.front().posted != nullptr;
    });
  }
  /// Returns the hosts of which messages are missing.
  std::vector<uint32_t> missing() const {
    std::vector<uint32_t> missing;
    for (uint32_t host = 0; host < link_.hosts(); ++host)
      if (!queues_[2 * host].empty() || !queues_[2 * host + 1].empty()) missing.push_back(host);
    return missing;
  }

 private:
  /// All hosts have the same link, so they cut messages alike.
  uint64_t emulated_segment_bytes() const {
    if (link_.settings_.gb_s == 0) return kMostEmulatedBytes;
    const double bytes = std::min(kEmulatedSeconds * 1e9 * link_.settings_.gb_s,
                                  static_cast<double>(kMostEmulatedBytes));
    return std::max(static_cast<uint64_t>(bytes), kLeastEmulatedBytes);
  }
  bool is_limited() const { return link_.settings_.gb_s > 0 || link_.settings_.latency_us > 0; }
  double seconds_of(const pidcomm_message &message) const {
    const double rate = link_.settings_.gb_s;
    return rate > 0 ? static_cast<double>(message.rows * message.bytes) / (1e9 * rate) : 0;
  }
  std::deque<Segment> &queue_of(uint32_t host, bool is_send) {
    return queues_[2 * host + (is_send ? 1 : 0)];
  }

  /// Decides when the emulated link has sent each segment: one segment of every host, then the next
  /// segment of every host.
  void schedule(const std::vector<Transfer> &transfers) {
    const double begin = clock_s(), latency = 1e-6 * link_.settings_.latency_us;
    link_.out_free_ = std::max(link_.out_free_, begin);
    link_.in_free_ = std::max(link_.in_free_, begin);
    std::size_t longest = 0;
    for (const auto &queue : queues_) longest = std::max(longest, queue.size());
    for (std::size_t i = 0; i < longest; ++i)
      for (const Transfer &transfer : transfers) {
        if (!transfer.is_send) continue;
        std::deque<Segment> &queue = queue_of(transfer.host, true);
        if (i >= queue.size() || queue[i].due != 0) continue;
        link_.out_free_ += seconds_of(queue[i].message);
        queue[i].due = link_.out_free_ + latency;
      }
  }

  void advance(Segment &segment, bool &has_progress) {
    const pidcomm_transport &transport = link_.transport_;
    if (segment.is_done) return;
    if (segment.posted == nullptr) {
      if (segment.due != 0 && clock_s() < segment.due) return;
      check(transport.post(transport.context, &segment.message, &segment.posted));
    }
    int is_done = 0;
    check(transport.test(transport.context, segment.posted, &is_done));
    if (!is_done) return;
    segment.posted = nullptr;
    segment.is_done = has_progress = true;
    if (is_limited() && !segment.message.is_send)
      link_.in_free_ = std::max(link_.in_free_ + seconds_of(segment.message), clock_s());
  }
  static void check(const char *sentence) {
    if (sentence != nullptr)
      fail(PIDCOMM_ERR_DEVICE, "the transport between the hosts failed: ", sentence);
  }

  Link &link_;
  std::vector<std::deque<Segment>> queues_;  // [2 * host + is_send]
};

void keep_forever(std::shared_ptr<void> memory) {
  static std::mutex mutex;
  static auto *const kept = new std::vector<std::shared_ptr<void>>;
  const std::lock_guard<std::mutex> lock(mutex);
  kept->push_back(std::move(memory));
}

Link::~Link() {
  if (memory_ != nullptr && broken_.empty())
    transport_.release(transport_.context, memory_);
  else if (memory_ != nullptr)
    keep_forever({memory_, [](void *) {}});
  if (transport_.close != nullptr) transport_.close(transport_.context);
}

void Link::give_up(const std::string &sentence) {
  if (broken_.empty())
    broken_ = sentence + "; the connection between the hosts cannot be used any more";
}

void Link::check_usable() const {
  if (!broken_.empty()) fail(PIDCOMM_ERR_DEVICE, broken_);
}

void Link::exchange(const std::vector<Transfer> &transfers) {
  check_usable();
  try {
    Queues queues(*this, transfers);
    double sleep = kShortestSleep, last_progress = clock_s();
    bool is_recorded = false;  // that the call waits for hosts
    while (!queues.is_empty()) {
      if (queues.poll()) {
        if (std::exchange(is_recorded, false)) await_hosts(0, 0);
        sleep = kShortestSleep;
        last_progress = clock_s();
        continue;
      }
      const bool waits = queues.waits_for_host();
      if (!waits) last_progress = clock_s();
      if (clock_s() - last_progress > settings_.timeout_s)
        fail(PIDCOMM_ERR_DEVICE, "host ", host(), " has waited ", settings_.timeout_s,
             " s for messages of host ", text_of(queues.missing()));
      if (waits && sleep == kLongestSleep && !is_recorded) {
        const std::vector<uint32_t> missing = queues.missing();
        await_hosts(missing.front(), static_cast<uint32_t>(missing.size()));
        is_recorded = true;
      }
      sleep_for(sleep);
      sleep = std::min(2 * sleep, kLongestSleep);
    }
    if (is_recorded) await_hosts(0, 0);
  } catch (const Error &error) {
    give_up(error.what());
  } catch (const std::bad_alloc &) {
    give_up("host " + std::to_string(host()) + " is out of memory during an exchange");
  }
  check_usable();
}

void Link::exchange_headers(const std::byte *own, std::byte *all, uint64_t bytes) {
  std::memcpy(all + host() * bytes, own, bytes);
  if (kind() == PIDCOMM_TRANSPORT_MPI) {
    std::vector<Transfer> transfers;
    const auto add = [&](uint32_t other, bool is_send) {
      transfers.push_back(
          {other, is_send, all + (is_send ? host() : other) * bytes, 1, bytes, bytes});
    };
    for (uint32_t n = 1; n < hosts(); ++n) {
      add((host() + hosts() - n) % hosts(), false);
      add((host() + n) % hosts(), true);
    }
    return exchange(transfers);
  }
  std::byte *const headers = shared() + header_exchanges_++ % 2 * hosts() * kHeaderBytes;
  const Kernels &kernels = kernels_of(best_isa());
  std::memcpy(headers + host() * kHeaderBytes, own, bytes);
  if (needs_flush()) flush_bytes(kernels, headers + host() * kHeaderBytes, bytes);
  sync();
  if (needs_flush()) flush_bytes(kernels, headers, hosts() * kHeaderBytes);
  for (uint32_t other = 0; other < hosts(); ++other)
    std::memcpy(all + other * bytes, headers + other * kHeaderBytes, bytes);
}

pidcomm_transport_kind Link::kind() const {
  if (transport_.shared == nullptr) return PIDCOMM_TRANSPORT_MPI;
  return transport_.reduce == nullptr ? PIDCOMM_TRANSPORT_POOL : PIDCOMM_TRANSPORT_SWITCH;
}

template <class Call>
void Link::call(const Call &call) {
  check_usable();
  const double begin = clock_s();
  if (const char *const sentence = call(transport_.context)) give_up(sentence);
  check_usable();
  pay(begin, 0, 0);
}

void Link::sync() {
  call([this](void *context) { return transport_.sync(context, settings_.timeout_s); });
  pay(clock_s(), 0, 0);  // a sync is a store and a load of another host's line
}

void Link::reduce(pidcomm_reduction reduction) {
  reduction.offset += pool_offset();
  call([&](void *context) { return transport_.reduce(context, &reduction, settings_.timeout_s); });
}

void Link::pay(double begin_s, uint64_t written, uint64_t read) const {
  if (settings_.gb_s <= 0 && settings_.latency_us <= 0) return;
  const double bytes = static_cast<double>(std::max(written, read));
  const double end = begin_s + 1e-6 * settings_.latency_us +
                     (settings_.gb_s > 0 ? bytes / (1e9 * settings_.gb_s) : 0);
  while (clock_s() < end)  // the system sleeps longer than asked, so the last part is a short spin
    if (const double rest = end - clock_s() - kSleepError; rest > 0) sleep_for(rest);
}

std::byte *Link::window(uint64_t bytes) {
  if (bytes > memory_bytes_) {
    if (memory_ != nullptr) transport_.release(transport_.context, memory_);
    memory_bytes_ = 0;
    memory_ = transport_.allocate(transport_.context, bytes + kAlignment);
    if (memory_ == nullptr) throw std::bad_alloc();
    memory_bytes_ = bytes;
  }
  const auto address = reinterpret_cast<uintptr_t>(memory_);
  return reinterpret_cast<std::byte *>((address + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace pidcomm
