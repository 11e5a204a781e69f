// Non-blocking calls for tests.
#pragma once

#include <pidcomm/pidcomm.hpp>

#include "machine.h"

namespace nonblocking_calls {

using machine::Bytes;
using machine::DpuSet;
using machine::Hypercube;
namespace request = pidcomm::request;

#ifdef __SANITIZE_THREAD__
constexpr std::size_t kLongBytes = 1 << 14;  // TSan makes every line take longer
#else
constexpr std::size_t kLongBytes = 1 << 17;
#endif
/// Options of a slow collective: the audit ISA counts every line.
inline pidcomm_options slow() {
  pidcomm_options options{};
  options.isa = PIDCOMM_ISA_AUDIT;
  options.threads = 1;
  return options;
}

/// Writes distinct rows at offset 0, and returns them.
inline Bytes write_distinct(const Hypercube &cube, std::uint64_t seed, std::size_t row_bytes) {
  Bytes rows(cube.pes() * row_bytes);
  verify::fill_distinct(seed, row_bytes, rows);
  CHECK_EQ(pidcomm_write(cube.get(), 0, row_bytes, rows.data()), +PIDCOMM_OK);
  return rows;
}

inline pidcomm_request alltoall_of(std::size_t bytes, std::size_t src, std::size_t dst) {
  return request::alltoall("10", bytes, src, dst, PIDCOMM_INT32);
}

inline pidcomm_pending *start(const Hypercube &cube, const pidcomm_request &request,
                              const pidcomm_options &options = {}) {
  pidcomm_pending *pending = nullptr;
  CHECK_EQ(pidcomm_irun(cube.get(), &request, &options, &pending), +PIDCOMM_OK);
  CHECK(pending != nullptr);
  return pending;
}

/// On DIMMs, operations of the SDK do not wait for non-blocking calls.
inline void before_sdk(const Hypercube &cube) {
  if (is_over_sdk_access()) CHECK_EQ(pidcomm_sync(cube.get()), +PIDCOMM_OK);
}

inline int irun(pidcomm_hypercube *cube, const pidcomm_request &request,
                pidcomm_pending **pending) {
  return pidcomm_irun(cube, &request, nullptr, pending);
}

}  // namespace nonblocking_calls
