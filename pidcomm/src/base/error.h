// The only error type inside the library. An Error has a status of tables.h, and a sentence with
// the offending values and the violated rule.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

#include "pidcomm/pidcomm.h"

namespace pidcomm {

class Error : public std::runtime_error {
 public:
  Error(pidcomm_status status, const std::string &sentence)
      : std::runtime_error(sentence), status_(status) {}
  pidcomm_status status() const { return status_; }

 private:
  pidcomm_status status_;
};

/// Joins the parts to an error sentence and throws an Error: fail(PIDCOMM_ERR_SIZE, "bytes (",
/// bytes, ") must be a multiple of 8").
template <class... Parts>
[[noreturn]] void fail(pidcomm_status status, const Parts &...parts) {
  std::ostringstream sentence;
  (sentence << ... << parts);
  throw Error(status, sentence.str());
}

}  // namespace pidcomm
