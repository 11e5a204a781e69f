/// Element types by their codes, for the files of the oracle.
#pragma once

#include <pidcomm/tables.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "small_float.h"

namespace verify {

[[noreturn]] inline void reject(const std::string &why) {
  throw std::invalid_argument("verify: " + why);
}

/// Calls visit(T{}) with the element type of a code.
template <class Visit>
auto with_type(int type, Visit visit) {
  using pidcomm_float16 = Float16;
  using pidcomm_bfloat16 = BFloat16;
  switch (type) {
#define VERIFY_ROW(ENUM, code, name, T, ...) \
  case code:                                 \
    return visit(T{});
    PIDCOMM_TYPES(VERIFY_ROW)
#undef VERIFY_ROW
  }
  reject("unknown type " + std::to_string(type));
}

template <class T>
T value_at(const std::uint8_t *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace verify
