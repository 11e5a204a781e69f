// Conversions between C and Python: requests, options, traces, and memory as one-dimensional contiguous arrays of bytes.
#pragma once

#include <line_kernels/audit_counts.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <pidcomm/pidcomm.h>

#include <cstdint>
#include <string>
#include <tuple>

namespace core {

namespace nb = nanobind;

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableBytes = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

struct Request {
  int collective;
  std::string mask;
  uint64_t bytes, src, dst;
  int type, op;

  /// Borrows the mask. Throws StatusError for a mask with a null character.
  pidcomm_request value() const;
};

using OptionCodes = std::tuple<int, int, int, int, uint64_t>;  // technique, isa, threads, coherence, scratch_offset

pidcomm_options options_of(const OptionCodes &codes);

/// A dict with every field of a trace. Codes are converted to names.
nb::dict dict_of(const pidcomm_trace &trace);
nb::dict dict_of(const pidcomm_audit &audit);

}  // namespace core
