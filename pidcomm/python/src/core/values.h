// Conversions between C and Python: requests, options, traces, and memory as one-dimensional
// contiguous arrays of bytes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <pidcomm/audit.h>
#include <pidcomm/batch.h>
#include <pidcomm/hosts.h>
#include <pidcomm/operators.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gil.h"
#include "status.h"

namespace core {

namespace nb = nanobind;

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableBytes = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// An operator of pidcomm/operators.h, and the memory that it refers to.
class Operator {
 public:
  /// combine, store: addresses of functions, as in pidcomm_operator, or 0. identity: empty, or an
  /// element.
  Operator(uint64_t element_bytes, uint64_t combine, uint64_t store, const nb::bytes &identity);
  /// name: of PIDCOMM_OPERATORS, or scaled_sum, which has a factor.
  static std::unique_ptr<Operator> of_library(const std::string &name, int type, double factor);
  Operator(const Operator &) = delete;
  Operator &operator=(const Operator &) = delete;

  const pidcomm_operator &value() const { return value_; }

 private:
  Operator() = default;

  pidcomm_operator value_{};
  std::vector<char> identity_;
  double factor_ = 0;
};

struct Request {
  int collective;
  std::string mask;
  uint64_t bytes, src, dst;
  int type, op;
  std::shared_ptr<Operator> operation;  // null: op

  /// Borrows the mask and the operator. Throws StatusError for a mask with a null character.
  pidcomm_request value() const;
};

using OptionCodes =
    std::tuple<int, int, int, int, uint64_t>;  // technique, isa, threads, coherence, scratch_offset

pidcomm_options options_of(const OptionCodes &codes);

using HostsSettings =
    std::tuple<double, double, double, uint64_t,
               uint64_t>;  // timeout_s, link_gb_s, link_latency_us, overlap, transport

pidcomm_hosts_settings settings_of(const HostsSettings &settings);

/// A dict with every field of a trace. Codes are converted to names.
nb::dict dict_of(const pidcomm_trace &trace);
nb::dict dict_of(const pidcomm_audit &audit);

/// Returns the text that a function writes: write(text, capacity, &length) returns a status.
template <class Write>
std::string text_of(const Write &write) {
  const gil::Released released;
  std::string text(std::size_t{1} << 12, '\0');
  for (;;) {
    std::size_t length = 0;
    check(write(text.data(), text.size(), &length));
    const bool is_whole = length < text.size();
    text.resize(is_whole ? length : length + 1);
    if (is_whole) return text;
  }
}

}  // namespace core
