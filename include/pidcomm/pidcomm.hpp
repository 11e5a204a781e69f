/// pidcomm.hpp: the C API with C++ lifetimes; every failure is an exception of type pidcomm::Error. See pidcomm.h for what the calls do.
#pragma once

#include <pidcomm/pidcomm.h>

#include <cstdint>
#include <pidcomm/request.hpp>
#include <pidcomm/sdk_error.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace pidcomm {

/// A failed call: what() names the offending values and the rule.
class Error : public std::runtime_error {
 public:
  Error(int status, const std::string &sentence) : std::runtime_error(sentence), status_(status) {}
  /// A pidcomm_status.
  int status() const noexcept { return status_; }

 private:
  int status_;
};

/// Throws Error unless status is PIDCOMM_OK.
inline void check(int status) {
  if (status != PIDCOMM_OK) throw Error(status, pidcomm_last_error());
}

/// Owns a DPU set.
class DpuSet {
 public:
  /// As dpu_alloc. Errors: PIDCOMM_ERR_DEVICE with the SDK's sentence.
  explicit DpuSet(std::uint32_t pes, const char *profile = nullptr) {
    const dpu_error_t error = dpu_alloc(pes, profile, &set_);
    if (error == DPU_OK) return;
    throw Error(PIDCOMM_ERR_DEVICE, "allocating " + std::to_string(pes) + " PEs: " + sdk_error_text(error));
  }
  ~DpuSet() { dpu_free(set_); }
  DpuSet(const DpuSet &) = delete;
  DpuSet &operator=(const DpuSet &) = delete;
  struct dpu_set_t get() const { return set_; }

 private:
  struct dpu_set_t set_ = {};
};

/// A collective that goes on beside its caller; its end is waited for at destruction at the latest. See "Non-blocking collectives" in
/// pidcomm.h.
class [[nodiscard]] Pending {
 public:
  explicit Pending(pidcomm_pending *call) : call_(call) {}
  Pending(Pending &&other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
  Pending &operator=(Pending &&other) noexcept {
    Pending earlier(std::move(other));
    std::swap(call_, earlier.call_);
    return *this;
  }
  ~Pending() { pidcomm_wait(&call_, nullptr); }

  /// Waits for the end; returns what was done (nothing the second time).
  pidcomm_trace wait() {
    pidcomm_trace trace;
    check(pidcomm_wait(&call_, &trace));
    return trace;
  }
  /// Whether it has ended; then it counts as waited for.
  bool test() {
    int is_done = 0;
    check(pidcomm_test(&call_, &is_done, nullptr));
    return is_done != 0;
  }

 private:
  pidcomm_pending *call_;
};

/// A DPU set arranged as a hypercube; destroy it after its Pending calls and before the set.
class Hypercube {
 public:
  Hypercube(struct dpu_set_t set, const std::vector<std::uint32_t> &axis_len) {
    check(pidcomm_hypercube_create(set, static_cast<std::uint32_t>(axis_len.size()), axis_len.data(), &manager_));
  }
  ~Hypercube() { pidcomm_hypercube_destroy(manager_); }
  Hypercube(const Hypercube &) = delete;
  Hypercube &operator=(const Hypercube &) = delete;

  /// For the functions of the C API.
  hypercube_manager *get() const { return manager_; }
  std::uint32_t pes() const { return pidcomm_pes(manager_); }

  void write(std::size_t offset, std::size_t bytes, const void *host) { check(pidcomm_write(manager_, offset, bytes, host)); }
  void read(std::size_t offset, std::size_t bytes, void *host) { check(pidcomm_read(manager_, offset, bytes, host)); }

  /// Any collective; the named ones below are shorthand.
  pidcomm_trace run(const pidcomm_request &request, const pidcomm_options &options = {}) {
    pidcomm_trace trace;
    check(pidcomm_run(manager_, &request, &options, &trace));
    return trace;
  }
  /// Any collective without waiting for its end: `Pending p = cube.irun(pidcomm::request::alltoall("10", 8192, 0, 8192, PIDCOMM_INT32))`.
  Pending irun(const pidcomm_request &request, const pidcomm_options &options = {}) {
    pidcomm_pending *call = nullptr;
    check(pidcomm_irun(manager_, &request, &options, &call));
    return Pending(call);
  }

  pidcomm_trace alltoall(const char *mask, std::size_t bytes, std::size_t src, std::size_t dst, int type,
                         const pidcomm_options &options = {}) {
    return run(request::alltoall(mask, bytes, src, dst, type), options);
  }
  pidcomm_trace reduce_scatter(const char *mask, std::size_t bytes, std::size_t src, std::size_t dst, int type, int op,
                               const pidcomm_options &options = {}) {
    return run(request::reduce_scatter(mask, bytes, src, dst, type, op), options);
  }
  pidcomm_trace allreduce(const char *mask, std::size_t bytes, std::size_t src, std::size_t dst, int type, int op,
                          const pidcomm_options &options = {}) {
    return run(request::allreduce(mask, bytes, src, dst, type, op), options);
  }
  pidcomm_trace allgather(const char *mask, std::size_t bytes, std::size_t src, std::size_t dst, int type,
                          const pidcomm_options &options = {}) {
    return run(request::allgather(mask, bytes, src, dst, type), options);
  }
  pidcomm_trace scatter(const char *mask, std::size_t bytes, const void *host, std::size_t host_bytes, std::size_t dst, int type,
                        const pidcomm_options &options = {}) {
    return run(request::scatter(mask, bytes, host, host_bytes, dst, type), options);
  }
  pidcomm_trace gather(const char *mask, std::size_t bytes, std::size_t src, void *host, std::size_t host_bytes, int type,
                       const pidcomm_options &options = {}) {
    return run(request::gather(mask, bytes, src, host, host_bytes, type), options);
  }
  pidcomm_trace reduce(const char *mask, std::size_t bytes, std::size_t src, void *host, std::size_t host_bytes, int type, int op,
                       const pidcomm_options &options = {}) {
    return run(request::reduce(mask, bytes, src, host, host_bytes, type, op), options);
  }
  pidcomm_trace broadcast(const char *mask, std::size_t bytes, const void *host, std::size_t host_bytes, std::size_t dst, int type,
                          const pidcomm_options &options = {}) {
    return run(request::broadcast(mask, bytes, host, host_bytes, dst, type), options);
  }

 private:
  hypercube_manager *manager_ = nullptr;
};

}  // namespace pidcomm
