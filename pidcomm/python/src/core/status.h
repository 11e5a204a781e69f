// Statuses of the library and of dpu.h as exceptions. `translate` converts them to pidcomm.Error
// and its subclasses.
#pragma once

#include <dpu_error.h>
#include <pidcomm/pidcomm.h>

#include <exception>
#include <stdexcept>
#include <string>

namespace core {

/// A status other than OK. `translate` converts it to a Python exception.
class StatusError : public std::runtime_error {
 public:
  StatusError(int status, const std::string &sentence)
      : std::runtime_error(sentence), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

/// An exception translator for nanobind. Converts a StatusError to the Python exception for the
/// status of the error.
void translate(const std::exception_ptr &pointer, void *);

/// Throws a StatusError with the library's error sentence unless `status` is OK.
void check(int status);

/// Throws StatusError unless error is DPU_OK. doing: the first part of the error sentence. status:
/// the status of the StatusError.
void check_device(dpu_error_t error, const std::string &doing, int status = PIDCOMM_ERR_DEVICE);

/// The status of an error about a program or a symbol: ERR_ARGUMENT if the caller caused the error,
/// else ERR_DEVICE.
int status_of(dpu_error_t error);

}  // namespace core
