// Hypercubes, and the non-blocking calls on hypercubes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "allocation.h"
#include "gil.h"
#include "recorder.h"
#include "values.h"

namespace core {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A non-blocking call and its host memory. The destructor waits for the call. The code that
/// creates the call keeps the hypercube alive.
class Pending {
 public:
  /// Makes the object but does not start the call; see `start`.
  Pending(std::shared_ptr<Allocation> allocation, std::optional<Bytes> in,
          std::optional<MutableBytes> out)
      : allocation_(std::move(allocation)), in_(std::move(in)), out_(std::move(out)) {}
  ~Pending() {
    const gil::Released released;
    if (!is_over_) {
      pidcomm_wait(&call_, nullptr);
      --allocation_->pending();
    }
    allocation_.reset();
  }
  Pending(const Pending &) = delete;
  Pending &operator=(const Pending &) = delete;

  /// start_call(pending): pidcomm_irun or pidcomm_hosts_irun; returns its status.
  template <class Start>
  void start(const Start &start_call) {
    allocation_->use([&](struct dpu_set_t) {
      check(start_call(&call_));
      ++allocation_->pending();
      is_over_ = false;
    });
  }

  /// Waits for the call and returns its trace. Later calls return the same trace.
  pidcomm_trace wait() {
    {
      const gil::Released released;
      const std::scoped_lock lock(mutex_);
      if (!is_over_) end(pidcomm_wait(&call_, &trace_));
    }
    return result();
  }

  std::optional<pidcomm_trace> test() {
    {
      const gil::Released released;
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock.owns_lock()) return std::nullopt;  // another thread waits for the call
      int is_done = 0;
      const int status = is_over_ ? status_ : pidcomm_test(&call_, &is_done, &trace_);
      if (!is_over_ && !is_done && status == PIDCOMM_OK) return std::nullopt;
      if (!is_over_) end(status);
    }
    return result();
  }

 private:
  void end(int status) {
    status_ = status;
    sentence_ = pidcomm_last_error();
    is_over_ = true;
    --allocation_->pending();
  }
  pidcomm_trace result() const {
    if (status_ != PIDCOMM_OK) throw StatusError(status_, sentence_);
    return trace_;
  }

  std::shared_ptr<Allocation> allocation_;
  std::mutex mutex_;
  pidcomm_pending *call_ = nullptr;
  bool is_over_ = true;
  int status_ = PIDCOMM_OK;
  std::string sentence_;
  pidcomm_trace trace_ = {};
  std::optional<Bytes> in_;
  std::optional<MutableBytes> out_;
};

class Cube {
 public:
  Cube(std::shared_ptr<Allocation> allocation, const std::vector<uint32_t> &lengths, uint32_t order,
       uint32_t first)
      : allocation_(std::move(allocation)),
        cube_(allocation_->add(lengths, order, first)),
        axes_(lengths.size()) {}
  ~Cube() {
    const gil::Released released;
    allocation_->remove(cube_);
    allocation_.reset();
  }
  Cube(const Cube &) = delete;
  Cube &operator=(const Cube &) = delete;

  pidcomm_trace run(const Request &request, const std::optional<Bytes> &host_in,
                    const std::optional<MutableBytes> &host_out, OptionCodes codes) {
    note_caller(2);
    const pidcomm_request value = value_of(request, host_in, host_out);
    const pidcomm_options options = options_of(codes);
    pidcomm_trace trace = {};
    allocation_->use(
        [&](struct dpu_set_t) { check(pidcomm_run(cube_, &value, &options, &trace)); });
    return trace;
  }

  using Arguments =
      std::tuple<const Request &, std::optional<Bytes>, std::optional<MutableBytes>, OptionCodes>;

  pidcomm_trace run_batch(const std::vector<Arguments> &calls) {
    note_caller(0);
    std::vector<pidcomm_request> requests;
    std::vector<pidcomm_options> options;
    for (const auto &[request, host_in, host_out, codes] : calls) {
      requests.push_back(value_of(request, host_in, host_out));
      options.push_back(options_of(codes));
    }
    pidcomm_trace trace = {};
    allocation_->use([&](struct dpu_set_t) {
      check(pidcomm_batch(cube_, requests.data(), requests.size(), options.data(), &trace));
    });
    return trace;
  }

  std::unique_ptr<Pending> start(const Request &request, std::optional<Bytes> host_in,
                                 std::optional<MutableBytes> host_out, OptionCodes codes) {
    note_caller(2);
    const pidcomm_request value = value_of(request, host_in, host_out);
    const pidcomm_options options = options_of(codes);
    auto pending = std::make_unique<Pending>(allocation_, std::move(host_in), std::move(host_out));
    pending->start(
        [&](pidcomm_pending **call) { return pidcomm_irun(cube_, &value, &options, call); });
    return pending;
  }

  void validate(const Request &request, OptionCodes codes, const std::optional<Bytes> &messages) {
    const pidcomm_request value = value_of(request, messages, std::nullopt);
    const pidcomm_options options = options_of(codes);
    allocation_->use([&](struct dpu_set_t) { check(pidcomm_validate(cube_, &value, &options)); });
  }

  /// The counts of the instruction set `audit` in the last call on the hypercube.
  nb::dict audit() {
    pidcomm_audit counts{};
    allocation_->use([&](struct dpu_set_t) { check(pidcomm_audit_of(cube_, &counts)); });
    return dict_of(counts);
  }

  /// The place of a PE: the index of its rank in the set, its chip and its bank.
  std::tuple<uint32_t, uint32_t, uint32_t> location(uint32_t pe) const {
    uint32_t rank = 0, chip = 0, bank = 0;
    allocation_->use(
        [&](struct dpu_set_t) { check(pidcomm_pe_location(cube_, pe, &rank, &chip, &bank)); });
    return {rank, chip, bank};
  }

  /// names: one per axis.
  void fill_variables(const std::vector<std::string> &names) {
    std::vector<const char *> axis_names;
    for (const std::string &name : names) axis_names.push_back(name.c_str());
    allocation_->use_sdk([&](struct dpu_set_t) {
      const std::scoped_lock lock(allocation_->transfers());
      check(pidcomm_fill_variables(cube_, axis_names.data()));
    });
  }

  std::vector<uint32_t> coords(uint32_t pe) const {
    std::vector<uint32_t> coords(axes_);
    allocation_->use([&](struct dpu_set_t) { check(pidcomm_coords(cube_, pe, coords.data())); });
    return coords;
  }

  uint32_t group_of(const std::string &mask, uint32_t pe) const {
    return index(pidcomm_group_of, mask, pe);
  }
  uint32_t member_of(const std::string &mask, uint32_t pe) const {
    return index(pidcomm_member_of, mask, pe);
  }

  std::pair<uint32_t, uint32_t> groups(const std::string &mask) const {
    std::pair<uint32_t, uint32_t> counts;
    allocation_->use([&](struct dpu_set_t) {
      check(pidcomm_groups(cube_, mask.c_str(), &counts.first, &counts.second));
    });
    return counts;
  }

  std::pair<double, uint64_t> stream_limit(int copy_order, uint64_t bytes_read,
                                           uint64_t bytes_written, uint64_t src, uint64_t dst,
                                           OptionCodes codes) {
    const pidcomm_options options = options_of(codes);
    std::pair<double, uint64_t> result;
    allocation_->use([&](struct dpu_set_t) {
      check(pidcomm_stream_limit(cube_, copy_order, bytes_read, bytes_written, src, dst, &options,
                                 &result.first, &result.second));
    });
    return result;
  }

  /// Seconds of one dpu_push_xfer between rows (one row per PE) and the PEs at `offset`.
  double push_xfer(bool to_pes, uint64_t offset, MutableBytes rows) {
    return allocation_->use_sdk([&](struct dpu_set_t set) {
      const uint32_t pes = pidcomm_pes(cube_);
      if (rows.size() % pes != 0)
        throw StatusError(PIDCOMM_ERR_HOST_BUFFER,
                          "the rows do not have the same size for every PE");
      if (offset > PIDCOMM_MRAM_BYTES)
        throw StatusError(PIDCOMM_ERR_WINDOW, "the offset is past the end of MRAM");
      const std::size_t row_bytes = rows.size() / pes;
      const std::scoped_lock lock(allocation_->transfers());
      struct dpu_set_t dpu;
      uint32_t pe;
      PIDCOMM_FOREACH_PE(cube_, dpu, pe)
      check_device(dpu_prepare_xfer(dpu, rows.data() + pe * row_bytes), "preparing a transfer");
      const double begin = seconds_now();
      check_device(dpu_push_xfer(set, to_pes ? DPU_XFER_TO_DPU : DPU_XFER_FROM_DPU,
                                 DPU_MRAM_HEAP_POINTER_NAME, static_cast<uint32_t>(offset),
                                 row_bytes, DPU_XFER_DEFAULT),
                   "dpu_push_xfer");
      return seconds_now() - begin;
    });
  }

  const std::shared_ptr<Allocation> &allocation() const { return allocation_; }
  pidcomm_hypercube *get() const { return cube_; }

  static pidcomm_request value_of(const Request &request, const std::optional<Bytes> &host_in,
                                  const std::optional<MutableBytes> &host_out) {
    pidcomm_request value = request.value();
    if (host_in) {
      value.host = const_cast<uint8_t *>(host_in->data());
      value.host_bytes = host_in->size();
    } else if (host_out) {
      value.host = host_out->data();
      value.host_bytes = host_out->size();
    }
    return value;
  }

 private:
  template <class Function>
  uint32_t index(const Function &function, const std::string &mask, uint32_t pe) const {
    uint32_t result = 0;
    allocation_->use([&](struct dpu_set_t) { check(function(cube_, mask.c_str(), pe, &result)); });
    return result;
  }
  std::shared_ptr<Allocation> allocation_;
  pidcomm_hypercube *cube_;
  std::size_t axes_;
};

/// MRAM on the PEs of a hypercube, which the library allocated.
class Block {
 public:
  Block(const Cube &cube, const std::string &name, uint64_t bytes)
      : allocation_(cube.allocation()),
        buffer_(allocation_->add_buffer(cube.get(), name, bytes)),
        window_(pidcomm_buffer_window(buffer_)),
        address_(pidcomm_buffer_address(buffer_)),
        size_bytes_(bytes) {}
  ~Block() {
    const gil::Released released;
    allocation_->remove(buffer_);
    allocation_.reset();
  }
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;

  uint64_t window() const { return window_; }
  uint32_t address() const { return address_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  std::shared_ptr<Allocation> allocation_;
  pidcomm_buffer *buffer_;
  uint64_t window_;
  uint32_t address_;
  uint64_t size_bytes_;
};

}  // namespace core
