/// request.hpp: the eight collectives as values, for pidcomm_run, pidcomm_irun, Hypercube::run and Hypercube::irun. C++.
#pragma once

#include <pidcomm/pidcomm.h>

#include <cstddef>

namespace pidcomm {

/// Collectives as values, for Hypercube::run and irun. The string of the mask and the host buffer are borrowed.
namespace request {
inline pidcomm_request alltoall(const char *mask, std::size_t bytes, std::size_t src, std::size_t dst, int type) {
  return {PIDCOMM_ALLTOALL, mask, bytes, src, dst, nullptr, 0, type, 0};
}
inline pidcomm_request reduce_scatter(const char *mask, std::size_t bytes, std::size_t src, std::size_t dst, int type, int op) {
  return {PIDCOMM_REDUCE_SCATTER, mask, bytes, src, dst, nullptr, 0, type, op};
}
inline pidcomm_request allreduce(const char *mask, std::size_t bytes, std::size_t src, std::size_t dst, int type, int op) {
  return {PIDCOMM_ALLREDUCE, mask, bytes, src, dst, nullptr, 0, type, op};
}
inline pidcomm_request allgather(const char *mask, std::size_t bytes, std::size_t src, std::size_t dst, int type) {
  return {PIDCOMM_ALLGATHER, mask, bytes, src, dst, nullptr, 0, type, 0};
}
inline pidcomm_request scatter(const char *mask, std::size_t bytes, const void *host, std::size_t host_bytes, std::size_t dst, int type) {
  return {PIDCOMM_SCATTER, mask, bytes, 0, dst, const_cast<void *>(host), host_bytes, type, 0};
}
inline pidcomm_request gather(const char *mask, std::size_t bytes, std::size_t src, void *host, std::size_t host_bytes, int type) {
  return {PIDCOMM_GATHER, mask, bytes, src, 0, host, host_bytes, type, 0};
}
inline pidcomm_request reduce(const char *mask, std::size_t bytes, std::size_t src, void *host, std::size_t host_bytes, int type, int op) {
  return {PIDCOMM_REDUCE, mask, bytes, src, 0, host, host_bytes, type, op};
}
inline pidcomm_request broadcast(const char *mask, std::size_t bytes, const void *host, std::size_t host_bytes, std::size_t dst, int type) {
  return {PIDCOMM_BROADCAST, mask, bytes, 0, dst, const_cast<void *>(host), host_bytes, type, 0};
}
}  // namespace request

}  // namespace pidcomm
