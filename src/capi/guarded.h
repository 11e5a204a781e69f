// Wraps the functions of the C API: turns exceptions into a status and the sentence of pidcomm_last_error.
#pragma once

#include <new>
#include <string>

#include "base/error.h"

namespace pidcomm {

/// Returns the sentence of the last error on this thread.
std::string &last_error();

/// Runs body and returns its status. Does not throw.
template <class Body>
int guarded(const Body &body) noexcept {
  try {
    last_error().clear();
    try {
      body();
      return PIDCOMM_OK;
    } catch (const Error &error) {
      last_error() = error.what();
      return error.status();
    } catch (const std::bad_alloc &) {
      last_error() = "the host is out of memory";
      return PIDCOMM_ERR_MEMORY;
    } catch (const std::exception &error) {
      last_error() = error.what();
      return PIDCOMM_ERR_INTERNAL;
    }
  } catch (...) {
    return PIDCOMM_ERR_MEMORY;  // there is no memory for the sentence
  }
}

inline void require(const void *pointer, const char *name) {
  if (pointer == nullptr) fail(PIDCOMM_ERR_ARGUMENT, name, " is null");
}

}  // namespace pidcomm
