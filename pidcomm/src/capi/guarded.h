// Wraps the functions of the C API: turns exceptions into a status and the sentence of
// pidcomm_last_error.
#pragma once

#include <exception>
#include <new>

#include "base/error.h"
#include "capi/last_error.h"

namespace pidcomm {

/// Runs body and returns its status. Does not throw.
template <class Body>
int guarded(const Body &body) noexcept {
  last_error::clear();
  try {
    body();
    return PIDCOMM_OK;
  } catch (const Error &error) {
    last_error::set(error.what());
    return error.status();
  } catch (const std::bad_alloc &) {
    last_error::set("the host is out of memory");
    return PIDCOMM_ERR_MEMORY;
  } catch (const std::exception &error) {
    last_error::set(error.what());
    return PIDCOMM_ERR_INTERNAL;
  } catch (...) {
    last_error::set("internal error: an exception of an unknown type");
    return PIDCOMM_ERR_INTERNAL;
  }
}

inline void require(const void *pointer, const char *name) {
  if (pointer == nullptr) fail(PIDCOMM_ERR_ARGUMENT, name, " is null");
}

}  // namespace pidcomm
