/// request.hpp: C++ functions that make the requests for pidcomm_run, pidcomm_irun, Hypercube::run
/// and Hypercube::irun.
#pragma once

#include <pidcomm/messages.h>
#include <pidcomm/operators.h>
#include <pidcomm/pidcomm.h>

namespace pidcomm {

/// This namespace has one function for each collective, with the parameters of the C call except
/// the hypercube: `pidcomm::request::alltoall("10", 8192, 0, 8192, PIDCOMM_INT32)`. The returned
/// request borrows the mask string and the host buffer.
namespace request {
#define PIDCOMM_FIELDS_011 mask, bytes, src, dst, nullptr, 0, type, 0
#define PIDCOMM_FIELDS_111 mask, bytes, src, dst, nullptr, 0, type, op
#define PIDCOMM_FIELDS_001 mask, bytes, 0, dst, const_cast<void *>(host), host_bytes, type, 0
#define PIDCOMM_FIELDS_010 mask, bytes, src, 0, host, host_bytes, type, 0
#define PIDCOMM_FIELDS_110 mask, bytes, src, 0, host, host_bytes, type, op
#define PIDCOMM_ROW(ENUM, code, name, op, before, after, ...)                             \
  inline pidcomm_request name(PIDCOMM_PARAMETERS_##op##before##after) {                   \
    return {sizeof(pidcomm_request), PIDCOMM_##ENUM, PIDCOMM_FIELDS_##op##before##after}; \
  }
PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW

/// The same for the scans of operators.h.
#define PIDCOMM_ROW(ENUM, code, name)                                     \
  inline pidcomm_request name(PIDCOMM_PARAMETERS_111) {                   \
    return {sizeof(pidcomm_request), PIDCOMM_##ENUM, PIDCOMM_FIELDS_111}; \
  }
PIDCOMM_SCANS(PIDCOMM_ROW)
#undef PIDCOMM_ROW

/// The same for pidcomm_sendrecv. The returned request borrows the messages.
inline pidcomm_request sendrecv(const pidcomm_pe_message *messages, size_t count, size_t src,
                                size_t dst) {
  pidcomm_request request{};
  request.collective = PIDCOMM_SENDRECV;
  request.src = src;
  request.dst = dst;
  request.host = const_cast<pidcomm_pe_message *>(messages);
  request.host_bytes = count * sizeof *messages;
  return request;
}
}  // namespace request

}  // namespace pidcomm
