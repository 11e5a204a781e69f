// An allocated PE set. The hypercubes and requests on the set share it.
#pragma once

#include <nanobind/nanobind.h>
#include <pidcomm/buffer.h>
#include <pidcomm/pidcomm.h>
#include <pidcomm/stream.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "gil.h"
#include "status.h"

namespace core {

namespace nb = nanobind;

/// An allocated set and the hypercubes on this set. Threads that use a hypercube hold the lock
/// mutex_ in shared mode. `free` blocks new users of the set, waits for current users, and destroys
/// the hypercubes before it frees the set. A thread releases the GIL before it waits for the lock,
/// because the holder of the lock may need the GIL.
class Allocation {
 public:
  explicit Allocation(struct dpu_set_t set) : set_(set) {}
  ~Allocation() {
    try {
      free();
    } catch (const StatusError &) {  // a destructor cannot report the error
    }
  }
  Allocation(const Allocation &) = delete;
  Allocation &operator=(const Allocation &) = delete;

  void free() {
    require_no_pending();
    const std::scoped_lock entry(entry_);  // blocks new users until the set is freed
    const std::unique_lock lock(mutex_);
    if (is_freed_) return;
    require_no_stream();
    require_no_pending();  // a non-blocking call may have started before this thread acquired the
                           // lock
    is_freed_ = true;
    {
      const std::scoped_lock buffers(buffers_mutex_);
      for (pidcomm_buffer *buffer : buffers_) pidcomm_buffer_destroy(buffer);
      buffers_.clear();
    }
    for (pidcomm_stream *stream : streams_) pidcomm_stream_destroy(stream);
    streams_.clear();
    for (pidcomm_hypercube *cube : cubes_) pidcomm_hypercube_destroy(cube);
    cubes_.clear();
    check_device(dpu_free(set_), "freeing the PE set");
  }

  bool is_freed() const { return is_freed_; }

  pidcomm_hypercube *add(const std::vector<uint32_t> &lengths, uint32_t order, uint32_t first) {
    const std::unique_lock lock(mutex_);
    require_allocated();
    pidcomm_hypercube *cube = nullptr;
    check(pidcomm_hypercube_create_at(set_, first, static_cast<uint32_t>(lengths.size()) | order,
                                      lengths.data(), &cube));
    cubes_.push_back(cube);
    return cube;
  }

  void remove(pidcomm_hypercube *cube) {
    const std::unique_lock lock(mutex_);
    if (std::erase(cubes_, cube) != 0) pidcomm_hypercube_destroy(cube);
  }

  pidcomm_stream *add_stream(uint32_t rank_groups) {
    const std::unique_lock lock(mutex_);
    require_allocated();
    pidcomm_stream *stream = nullptr;
    check(pidcomm_stream_create(set_, rank_groups, &stream));
    streams_.push_back(stream);
    return stream;
  }

  void remove(pidcomm_stream *stream) {
    const std::unique_lock lock(mutex_);
    if (std::erase(streams_, stream) != 0) pidcomm_stream_destroy(stream);
  }

  void remove(pidcomm_buffer *buffer) {
    const std::scoped_lock lock(buffers_mutex_);
    if (std::erase(buffers_, buffer) != 0) pidcomm_buffer_destroy(buffer);
  }

  /// The number of non-blocking calls for which the program has not waited.
  std::atomic<uint32_t> &pending() { return pending_; }

  /// A transfer holds this mutex from the preparation of its buffers until its end, because a set
  /// has only one list of buffers.
  std::mutex &transfers() const { return transfers_; }

  /// Calls body(set) without the GIL. The set cannot be freed during the call.
  template <class Body>
  auto use(const Body &body) const {
    const gil::Released released;
    const std::shared_lock lock = enter();
    require_allocated();
    return body(set_);
  }

  /// The same for a body that runs a stream. Waits for other users and non-blocking calls; until
  /// the end of the body, all other calls on the set raise an error, also those of functions that
  /// the stream calls.
  template <class Body>
  auto use_alone(const Body &body) {
    const gil::Released released;
    {
      const std::scoped_lock entry(entry_);
      const std::unique_lock lock(mutex_);
      require_allocated();
      runs_stream_ = true;
    }
    const auto ends = [](std::atomic<bool> *runs) { *runs = false; };
    const std::unique_ptr<std::atomic<bool>, decltype(ends)> guard(&runs_stream_);
    return body(set_);
  }

  /// The same as `use` for a body that uses the SDK. First waits for non-blocking calls.
  template <class Body>
  auto use_sdk(const Body &body) const {
    return use([&](struct dpu_set_t set) {
      wait_for_calls();
      return body(set);
    });
  }

  /// Waits for non-blocking calls: if the library accesses ranks through the SDK, operations of the
  /// SDK do not wait for them. Requires that the set cannot be freed during the call.
  void wait_for_calls() const {
    if (pending_ != 0 && !cubes_.empty()) check(pidcomm_sync(cubes_.front()));
  }

  /// Creates a buffer of bytes on the PEs. The buffer exists until `remove` or `free`.
  pidcomm_buffer *add_buffer(pidcomm_hypercube *cube, const std::string &name, uint64_t bytes) {
    pidcomm_buffer *buffer = nullptr;
    use([&](struct dpu_set_t) {
      check(pidcomm_buffer_create(cube, name.c_str(), bytes, PIDCOMM_UINT8, &buffer));
      const std::scoped_lock lock(buffers_mutex_);
      buffers_.push_back(buffer);
    });
    return buffer;
  }

 private:
  std::shared_lock<std::shared_mutex> enter() const {
    const std::scoped_lock entry(entry_);
    return std::shared_lock(mutex_);
  }
  void require_no_pending() const {
    if (pending_ != 0)
      throw StatusError(PIDCOMM_ERR_BUSY,
                        "the PE set has non-blocking calls that have not been waited for: " +
                            std::to_string(pending_) +
                            "; wait for their requests before you free it");
  }
  void require_allocated() const {
    if (is_freed_)
      throw StatusError(
          PIDCOMM_ERR_SET,
          "the PE set has been freed; allocate a new one and make the hypercube again");
    require_no_stream();
  }
  void require_no_stream() const {
    if (runs_stream_)
      throw StatusError(PIDCOMM_ERR_BUSY, "the PE set runs a stream; wait for its end");
  }
  struct dpu_set_t set_;
  mutable std::mutex
      entry_;  // a thread holds it while it waits for mutex_, so that users cannot overtake `free`
  mutable std::shared_mutex mutex_;
  mutable std::mutex transfers_;
  std::vector<pidcomm_hypercube *> cubes_;
  std::vector<pidcomm_stream *> streams_;
  std::mutex buffers_mutex_;
  std::vector<pidcomm_buffer *> buffers_;
  std::atomic<bool> is_freed_ = false;
  std::atomic<bool> runs_stream_ = false;
  std::atomic<uint32_t> pending_ = 0;
};

}  // namespace core
