/// pidcomm.hpp: C++ classes for the C API. These classes release their resources in destructors,
/// and throw pidcomm::Error if a C call fails. pidcomm.h describes the C calls.
#pragma once

#include <pidcomm/batch.h>
#include <pidcomm/buffer.h>
#include <pidcomm/pidcomm.h>

#include <cstdint>
#include <pidcomm/request.hpp>
#include <pidcomm/sdk_error.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pidcomm {
inline namespace api {  // programs that contain the library have other classes of these names in
                        // pidcomm

/// The exception for a failed call; what() names the offending values and the violated rule.
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

/// Whether types T and U are equal, or arithmetic types with equal sizes, both floating-point types
/// or both not, and both signed or both not.
template <class T, class U>
inline constexpr bool is_like =
    std::is_same_v<T, U> ||
    (std::is_arithmetic_v<T> && std::is_arithmetic_v<U> && sizeof(T) == sizeof(U) &&
     std::is_floating_point_v<T> == std::is_floating_point_v<U> &&
     std::is_signed_v<T> == std::is_signed_v<U>);

/// Returns the pidcomm_type of an element type.
template <class T>
constexpr int type_of() {
#define PIDCOMM_ROW(ENUM, code, name, ctype, kind) : is_like<T, ctype> ? code
  constexpr int type = std::is_same_v<T, bool> ? 0 PIDCOMM_TYPES(PIDCOMM_ROW) : 0;
#undef PIDCOMM_ROW
  static_assert(
      type != 0,
      "elements are integers of 8 to 64 bits, float, double, pidcomm_float16 or pidcomm_bfloat16");
  return type;
}

/// Owns a DPU set.
class DpuSet {
 public:
  /// Calls dpu_alloc. Errors: PIDCOMM_ERR_DEVICE with the SDK's sentence.
  explicit DpuSet(std::uint32_t pes, const char *profile = nullptr) {
    const dpu_error_t error = dpu_alloc(pes, profile, &set_);
    if (error == DPU_OK) return;
    throw Error(PIDCOMM_ERR_DEVICE,
                "allocating " + std::to_string(pes) + " PEs: " + sdk_error_text(error));
  }
  ~DpuSet() { dpu_free(set_); }
  DpuSet(const DpuSet &) = delete;
  DpuSet &operator=(const DpuSet &) = delete;
  struct dpu_set_t get() const { return set_; }

 private:
  struct dpu_set_t set_ = {};
};

/// Returns the PEs of the largest hypercube of a set, in the order of their PE numbers; see
/// pidcomm_usable_pes.
inline std::vector<pidcomm_usable_pe> usable_pes(struct dpu_set_t set) {
  std::uint32_t count = 0;
  check(pidcomm_usable_pes(set, nullptr, 0, &count));
  std::vector<pidcomm_usable_pe> pes(count);
  check(pidcomm_usable_pes(set, pes.data(), count, &count));
  return pes;
}

/// A non-blocking collective; the destructor waits for the end of the collective. See "Non-blocking
/// collectives" in pidcomm.h.
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

  /// Waits for the end of the collective and returns its trace; after the first wait, another wait
  /// returns a trace of zeros.
  pidcomm_trace wait() {
    pidcomm_trace trace = {};
    check(pidcomm_wait(&call_, &trace));
    return trace;
  }
  /// Returns whether the collective has ended. If test() returns true, you do not have to call
  /// wait().
  bool test() {
    int is_done = 0;
    check(pidcomm_test(&call_, &is_done, nullptr));
    return is_done != 0;
  }

 private:
  pidcomm_pending *call_;
};

template <class T>
class Buffer;

/// A DPU set arranged as a hypercube. Destroy the Hypercube after its Pending objects and before
/// its DpuSet.
class Hypercube {
 public:
  /// first: the PE of the set that is PE 0 of the hypercube, a multiple of 8 (64 with
  /// PIDCOMM_FOREACH_ORDER). order: 0, or PIDCOMM_FOREACH_ORDER.
  Hypercube(struct dpu_set_t set, const std::vector<std::uint32_t> &axis_len,
            std::uint32_t first = 0, std::uint32_t order = 0) {
    const auto axes = static_cast<std::uint32_t>(axis_len.size());
    check(pidcomm_hypercube_create_at(set, first, axes | order, axis_len.data(), &cube_));
  }
  ~Hypercube() { pidcomm_hypercube_destroy(cube_); }
  Hypercube(const Hypercube &) = delete;
  Hypercube &operator=(const Hypercube &) = delete;

  /// Returns the handle for functions of the C API.
  pidcomm_hypercube *get() const { return cube_; }
  std::uint32_t pes() const { return pidcomm_pes(cube_); }

  void write(std::size_t offset, std::size_t bytes, const void *host) {
    check(pidcomm_write(cube_, offset, bytes, host));
  }
  void read(std::size_t offset, std::size_t bytes, void *host) {
    check(pidcomm_read(cube_, offset, bytes, host));
  }

  /// Writes the place of each PE to variables of the loaded program; the axes have the names
  /// PIDCOMM_AXIS_NAMES.
  void fill_variables() { check(pidcomm_fill_variables(cube_, nullptr)); }

  /// Runs any collective.
  pidcomm_trace run(const pidcomm_request &request, const pidcomm_options &options = {}) {
    pidcomm_trace trace = {};
    check(pidcomm_run(cube_, &request, &options, &trace));
    return trace;
  }
  /// Starts any collective and does not wait for the end of the collective: `Pending p =
  /// cube.irun(pidcomm::request::alltoall("10", 8192, 0, 8192, PIDCOMM_INT32))`.
  Pending irun(const pidcomm_request &request, const pidcomm_options &options = {}) {
    pidcomm_pending *call = nullptr;
    check(pidcomm_irun(cube_, &request, &options, &call));
    return Pending(call);
  }

  /// Runs requests one after another, as pidcomm_batch does, for example `cube.batch({a, b})`.
  /// options: one for each request; without options, all requests have the default options.
  pidcomm_trace batch(const std::vector<pidcomm_request> &requests,
                      const std::vector<pidcomm_options> &options = {}) {
    if (!options.empty() && options.size() != requests.size())
      throw Error(PIDCOMM_ERR_ARGUMENT, "batch: there are " + std::to_string(requests.size()) +
                                            " requests and " + std::to_string(options.size()) +
                                            " options; a batch needs one for each, or none");
    pidcomm_trace trace = {};
    check(pidcomm_batch(cube_, requests.data(), requests.size(),
                        options.empty() ? nullptr : options.data(), &trace));
    return trace;
  }

  /// Returns the request of a collective on buffers, for run, irun and batch. in, out: null if the
  /// input or the output is in host rows, at `host`; see pidcomm_buffer_request.
  pidcomm_request buffer_request(int collective, const char *mask, const pidcomm_buffer *in,
                                 const pidcomm_buffer *out, int op = 0, const void *host = nullptr,
                                 std::size_t host_bytes = 0) {
    pidcomm_request request = {};
    check(pidcomm_buffer_request(cube_, collective, mask, in, out, op, &request));
    request.host = const_cast<void *>(host);
    request.host_bytes = host_bytes;
    return request;
  }

  /// Waits until all earlier calls on the ranks have ended: necessary before operations of the SDK
  /// on real DIMMs.
  void sync() { check(pidcomm_sync(cube_)); }

  /// The collectives of pidcomm.h. T is the element type: cube.allreduce<float>("10", bytes, src,
  /// dst, PIDCOMM_SUM). If a collective has a host buffer, the compiler deduces T from the buffer.
  /// The last argument of a collective may be a pidcomm_options. Buffers replace `bytes`, src and
  /// dst: cube.allreduce("10", grad, sum, PIDCOMM_SUM).
#define PIDCOMM_METHOD_011(name)                                                            \
  template <class T>                                                                        \
  pidcomm_trace name(const char *mask, std::size_t bytes, std::size_t src, std::size_t dst, \
                     const pidcomm_options &options = {}) {                                 \
    return run(request::name(mask, bytes, src, dst, type_of<T>()), options);                \
  }
#define PIDCOMM_METHOD_111(name)                                                            \
  template <class T>                                                                        \
  pidcomm_trace name(const char *mask, std::size_t bytes, std::size_t src, std::size_t dst, \
                     int op, const pidcomm_options &options = {}) {                         \
    return run(request::name(mask, bytes, src, dst, type_of<T>(), op), options);            \
  }
#define PIDCOMM_METHOD_001(name)                                                                 \
  template <class T>                                                                             \
  pidcomm_trace name(const char *mask, std::size_t bytes, const T *host, std::size_t host_bytes, \
                     std::size_t dst, const pidcomm_options &options = {}) {                     \
    return run(request::name(mask, bytes, host, host_bytes, dst, type_of<T>()), options);        \
  }
#define PIDCOMM_METHOD_010(name)                                                          \
  template <class T>                                                                      \
  pidcomm_trace name(const char *mask, std::size_t bytes, std::size_t src, T *host,       \
                     std::size_t host_bytes, const pidcomm_options &options = {}) {       \
    return run(request::name(mask, bytes, src, host, host_bytes, type_of<T>()), options); \
  }
#define PIDCOMM_METHOD_110(name)                                                              \
  template <class T>                                                                          \
  pidcomm_trace name(const char *mask, std::size_t bytes, std::size_t src, T *host,           \
                     std::size_t host_bytes, int op, const pidcomm_options &options = {}) {   \
    return run(request::name(mask, bytes, src, host, host_bytes, type_of<T>(), op), options); \
  }
#define PIDCOMM_BUFFERS_011 const Buffer<T> &in, const Buffer<T> &out
#define PIDCOMM_BUFFERS_111 const Buffer<T> &in, const Buffer<T> &out, int op
#define PIDCOMM_BUFFERS_001 const T *host, std::size_t host_bytes, const Buffer<T> &out
#define PIDCOMM_BUFFERS_010 const Buffer<T> &in, T *host, std::size_t host_bytes
#define PIDCOMM_BUFFERS_110 const Buffer<T> &in, T *host, std::size_t host_bytes, int op
#define PIDCOMM_PASSED_011 in.get(), out.get()
#define PIDCOMM_PASSED_111 in.get(), out.get(), op
#define PIDCOMM_PASSED_001 nullptr, out.get(), 0, host, host_bytes
#define PIDCOMM_PASSED_010 in.get(), nullptr, 0, host, host_bytes
#define PIDCOMM_PASSED_110 in.get(), nullptr, op, host, host_bytes
#define PIDCOMM_ROW(ENUM, code, name, op, before, after, ...)                                      \
  PIDCOMM_METHOD_##op##before##after(name) template <class T>                                      \
  pidcomm_trace name(const char *mask, PIDCOMM_BUFFERS_##op##before##after,                        \
                     const pidcomm_options &options = {}) {                                        \
    return run(buffer_request(PIDCOMM_##ENUM, mask, PIDCOMM_PASSED_##op##before##after), options); \
  }
  PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW

 private:
  pidcomm_hypercube *cube_ = nullptr;
};

/// An array of T in the MRAM of every PE; see buffer.h. Destroy the Buffer before its DpuSet.
template <class T>
class Buffer {
 public:
  /// Creates a buffer of `count` elements per PE.
  Buffer(Hypercube &cube, const char *name, std::size_t count) {
    check(pidcomm_buffer_create(cube.get(), name, count, type_of<T>(), &buffer_));
  }
  /// Returns the MRAM variable `name` of the loaded program.
  static Buffer of_variable(Hypercube &cube, const char *name) {
    pidcomm_buffer *buffer = nullptr;
    check(pidcomm_buffer_of_variable(cube.get(), name, type_of<T>(), &buffer));
    return Buffer(buffer);
  }
  Buffer(Buffer &&other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  Buffer &operator=(Buffer &&other) noexcept {
    Buffer earlier(std::move(other));
    std::swap(buffer_, earlier.buffer_);
    return *this;
  }
  ~Buffer() { pidcomm_buffer_destroy(buffer_); }

  /// Returns the handle for functions of the C API.
  pidcomm_buffer *get() const { return buffer_; }
  /// Returns the number of elements per PE.
  std::size_t count() const { return pidcomm_buffer_count(buffer_); }

  /// Returns the `count` elements from element `first` on, in the memory of this buffer.
  Buffer slice(std::size_t first, std::size_t count) const {
    pidcomm_buffer *part = nullptr;
    check(pidcomm_buffer_slice(buffer_, first, count, &part));
    return Buffer(part);
  }
  /// Writes or reads one row of count() elements per PE of the hypercube.
  void write(Hypercube &cube, const std::vector<T> &rows) const {
    check(pidcomm_buffer_write(cube.get(), buffer_, rows.data(), rows.size() * sizeof(T)));
  }
  std::vector<T> read(Hypercube &cube) const {
    std::vector<T> rows(cube.pes() * count());
    check(pidcomm_buffer_read(cube.get(), buffer_, rows.data(), rows.size() * sizeof(T)));
    return rows;
  }

 private:
  explicit Buffer(pidcomm_buffer *buffer) : buffer_(buffer) {}
  pidcomm_buffer *buffer_ = nullptr;
};

}  // namespace api
}  // namespace pidcomm
