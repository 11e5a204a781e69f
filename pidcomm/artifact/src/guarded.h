// Turns exceptions into a status and the last error of the thread.
#pragma once

#include <pidcomm/pidcomm.h>

#include <exception>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>

namespace pidcomm_artifact {

/// An error: a status, and a sentence with the offending values and the rule.
class Error : public std::runtime_error {
 public:
  Error(pidcomm_status status, const std::string &sentence)
      : std::runtime_error(sentence), status_(status) {}
  pidcomm_status status() const { return status_; }

 private:
  pidcomm_status status_;
};

/// Joins the parts to a sentence and throws an Error: fail(PIDCOMM_ERR_TYPE, "size (", size, ")
/// must be 1, 2, 4 or 8").
template <class... Parts>
[[noreturn]] void fail(pidcomm_status status, const Parts &...parts) {
  std::ostringstream sentence;
  (sentence << ... << parts);
  throw Error(status, sentence.str());
}

inline void require(const void *pointer, const char *name) {
  if (pointer == nullptr) fail(PIDCOMM_ERR_ARGUMENT, name, " is null");
}

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

}  // namespace pidcomm_artifact
