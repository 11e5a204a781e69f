// A transport between hosts that are threads of one process: messages wait in queues of the test.
#pragma once

#include <pidcomm/hosts.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

/// The queues between all hosts.
class QueueNetwork {
 public:
  explicit QueueNetwork(uint32_t hosts) : hosts_(hosts) {}

  /// The transport of one host. The network must outlive it.
  pidcomm_transport transport(uint32_t host) {
    pidcomm_transport table{};
    table.context = new Context{this, host};
    table.host = host;
    table.hosts = hosts_;
    table.allows_any_thread = 1;
    table.post = [](void *context, const pidcomm_message *message, void **posted) -> const char * {
      auto *const own = static_cast<Context *>(context);
      return own->network->post(own->host, *message, posted);
    };
    table.test = [](void *context, void *posted, int *is_done) -> const char * {
      auto *const own = static_cast<Context *>(context);
      const std::lock_guard<std::mutex> lock(own->network->mutex_);
      *is_done = static_cast<Posted *>(posted)->is_done;
      if (*is_done) delete static_cast<Posted *>(posted);
      return nullptr;
    };
    table.abandon = [](void *context, void *posted) {
      static_cast<Context *>(context)->network->abandon(static_cast<Posted *>(posted));
    };
    table.allocate = [](void *, std::size_t bytes) { return std::malloc(bytes); };
    table.release = [](void *, void *memory) { std::free(memory); };
    table.close = [](void *context) { delete static_cast<Context *>(context); };
    return table;
  }

  /// From now on, post fails.
  void fail() {
    const std::lock_guard<std::mutex> lock(mutex_);
    fails_ = true;
  }

 private:
  struct Context {
    QueueNetwork *network;
    uint32_t host;
  };
  struct Posted {
    pidcomm_message message;
    bool is_done = false;
  };
  struct Pair {
    std::deque<Posted *> sent, awaited;
  };

  const char *post(uint32_t host, const pidcomm_message &message, void **posted) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (fails_) return "the test's network is down";
    auto *const own = new Posted{message};
    *posted = own;
    Pair &pair =
        pairs_[message.is_send ? std::pair(host, message.host) : std::pair(message.host, host)];
    (message.is_send ? pair.sent : pair.awaited).push_back(own);
    while (!pair.sent.empty() && !pair.awaited.empty()) {
      deliver(*pair.sent.front(), *pair.awaited.front());
      pair.sent.pop_front();
      pair.awaited.pop_front();
    }
    return nullptr;
  }

  static void deliver(Posted &from, Posted &to) {
    if (from.message.rows * from.message.bytes != to.message.rows * to.message.bytes)
      std::abort();  // MPI would cut the message
    std::vector<char> bytes;
    for (std::size_t row = 0; row < from.message.rows; ++row) {
      const char *const begin =
          static_cast<const char *>(from.message.base) + row * from.message.stride;
      bytes.insert(bytes.end(), begin, begin + from.message.bytes);
    }
    for (std::size_t row = 0; row < to.message.rows; ++row)
      std::memcpy(static_cast<char *>(to.message.base) + row * to.message.stride,
                  bytes.data() + row * to.message.bytes, to.message.bytes);
    from.is_done = to.is_done = true;
  }

  void abandon(Posted *posted) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto &[hosts, pair] : pairs_)
      for (std::deque<Posted *> *queue : {&pair.sent, &pair.awaited}) std::erase(*queue, posted);
    delete posted;
  }

  const uint32_t hosts_;
  std::mutex mutex_;
  std::map<std::pair<uint32_t, uint32_t>, Pair> pairs_;
  bool fails_ = false;
};
