// Structs that begin with their size, so that a program and a library of different versions can
// exchange these structs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/error.h"

namespace pidcomm {

/// Size of a struct in version 0.1 of the library. A struct without a specialisation of this
/// template has the same size in all versions.
template <class T>
inline constexpr std::size_t kFirstBytes = sizeof(T);
template <>
inline constexpr std::size_t kFirstBytes<pidcomm_options> =
    offsetof(pidcomm_options, scratch_offset) + sizeof(size_t);
template <>
inline constexpr std::size_t kFirstBytes<pidcomm_request> =
    offsetof(pidcomm_request, op) + sizeof(int);
template <>
inline constexpr std::size_t kFirstBytes<pidcomm_trace> =
    offsetof(pidcomm_trace, bytes_staged) + sizeof(uint64_t);

/// Checks the size of a caller's struct. Errors: ERR_ARGUMENT (the pointer is null, or no version
/// of the struct has this size).
template <class T>
void check_size(const T *given, const char *name, std::size_t largest = sizeof(T)) {
  if (given == nullptr) fail(PIDCOMM_ERR_ARGUMENT, name, " is null");
  if (given->size < kFirstBytes<T> || given->size > largest)
    fail(PIDCOMM_ERR_ARGUMENT, name, "->size is ", given->size, "; it must be sizeof the struct (",
         sizeof(T),
         " in this version): set it with the PIDCOMM_*_INITIALIZER of the struct, in C++ with {}");
}

// Every new field must change the size of its struct. A field that fits into the padding of an
// older version would not change the struct's size.
#define PIDCOMM_ROW(ctype, ...) +sizeof(ctype)
static_assert(sizeof(pidcomm_trace) == sizeof(size_t) PIDCOMM_TRACE_FIELDS(PIDCOMM_ROW),
              "a new field of the trace has 8 bytes");
#undef PIDCOMM_ROW

/// An upper limit for the size in bytes of any version of a struct.
inline constexpr std::size_t kLargestBytes = 4096;

/// Copies a caller's struct to the struct of this version. Fields that the caller's version of the
/// struct lacks become 0. Errors: those of check_size, and ERR_ARGUMENT if a field that this
/// version does not know is not 0.
template <class T>
T received(const T *given, const char *name) {
  check_size(given, name, kLargestBytes);
  T own{};
  std::memcpy(&own, given, std::min(given->size, sizeof own));
  const auto *const bytes = reinterpret_cast<const unsigned char *>(given);
  if (std::any_of(bytes + std::min(given->size, sizeof own), bytes + given->size,
                  [](unsigned char byte) { return byte != 0; }))
    fail(PIDCOMM_ERR_ARGUMENT, name,
         " has a field that is not 0 and that this version of the library (", sizeof own,
         " bytes, given ", given->size, ") does not know");
  own.size = sizeof own;
  return own;
}

/// Fills those fields of a caller's struct that the caller's version and this version of the struct
/// have. Does not change all other fields of the caller's struct.
template <class T>
void deliver(const T &own, T *given) {
  const std::size_t known = std::min(given->size, sizeof own) - sizeof own.size;
  std::memcpy(reinterpret_cast<char *>(given) + sizeof own.size,
              reinterpret_cast<const char *>(&own) + sizeof own.size, known);
}

/// If trace is not null, stores the trace that body() returns, or zeros if body() throws.
template <class Body>
void deliver_trace(pidcomm_trace *trace, const Body &body) {
  if (trace != nullptr) {
    check_size(trace, "trace", kLargestBytes);
    deliver(pidcomm_trace{}, trace);
  }
  const pidcomm_trace done = body();
  if (trace != nullptr) deliver(done, trace);
}

/// Returns the caller's options, or the default options if the pointer is null.
inline pidcomm_options received_options(const pidcomm_options *options) {
  return options == nullptr ? pidcomm_options{} : received(options, "options");
}

}  // namespace pidcomm
