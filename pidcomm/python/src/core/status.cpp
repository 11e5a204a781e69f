#include "status.h"

#include <nanobind/nanobind.h>

#include <pidcomm/sdk_error.hpp>

namespace nb = nanobind;

namespace core {

namespace {

const char *status_name(int status) {
  switch (status) {
#define PIDCOMM_ROW(ENUM, code, text) \
  case code:                          \
    return #ENUM;
    PIDCOMM_STATUSES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    default:
      return "ERR_INTERNAL";
  }
}

}  // namespace

void translate(const std::exception_ptr &pointer, void *) {
  try {
    std::rethrow_exception(pointer);
  } catch (const StatusError &error) {
    try {
      const nb::object exception =
          nb::module_::import_("pidcomm.errors")
              .attr("make_error")(status_name(error.status()), error.what());
      PyErr_SetObject(exception.type().ptr(), exception.ptr());
    } catch (nb::python_error &raised) {  // Ctrl-C while Python makes the exception
      raised.restore();
    }
  }
}

void check(int status) {
  if (status != PIDCOMM_OK) throw StatusError(status, pidcomm_last_error());
}

void check_device(dpu_error_t error, const std::string &doing, int status) {
  if (error == DPU_OK) return;
  const std::string sentence = doing + ": " + pidcomm::sdk_error_text(error);
  throw StatusError(error == DPU_ERR_SYSTEM ? static_cast<int>(PIDCOMM_ERR_MEMORY) : status,
                    sentence);
}

int status_of(dpu_error_t error) {
  switch (error) {
    case DPU_ERR_ELF_NO_SUCH_FILE:
    case DPU_ERR_ELF_INVALID_FILE:
    case DPU_ERR_TOO_MANY_TASKLETS:
    case DPU_ERR_UNKNOWN_SYMBOL:
    case DPU_ERR_INVALID_SYMBOL_ACCESS:
    case DPU_ERR_INVALID_WRAM_ACCESS:
    case DPU_ERR_INVALID_IRAM_ACCESS:
    case DPU_ERR_INVALID_MRAM_ACCESS:
      return PIDCOMM_ERR_ARGUMENT;
    default:
      return PIDCOMM_ERR_DEVICE;
  }
}

}  // namespace core
