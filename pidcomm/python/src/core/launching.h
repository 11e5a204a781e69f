// Launches that Ctrl-C ends, for sets and streams.
#pragma once

#include <nanobind/nanobind.h>
#include <pidcomm/pidcomm.h>

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <utility>

#include "gil.h"
#include "status.h"

namespace core {

namespace nb = nanobind;

/// The bytes of a struct dpu_set_t, which other extension modules use to access a set.
inline nb::bytes bytes_of(const struct dpu_set_t &set) { return nb::bytes(&set, sizeof set); }

/// Functions that exist only on emulated DIMMs. Their argument is bytes_of(set).
using Stop = std::optional<nb::callable>;  // ends the launch of a set
using ExplainFault =
    std::optional<nb::callable>;  // returns a sentence about a faulting PE of a set

/// Waits for `run`. After Ctrl-C, the function throws KeyboardInterrupt as soon as the PEs have
/// ended; on emulated DIMMs, it first stops the PEs. Requires a released GIL.
template <class Run>
auto run_interruptibly(struct dpu_set_t set, const Stop &stop, const Run &run) {
  std::chrono::milliseconds period{50};
  auto end = std::async(std::launch::async, run);
  std::optional<nb::python_error> interrupt;
  while (end.wait_for(period) != std::future_status::ready) {
    const gil::Held held;
    if (!interrupt && PyErr_CheckSignals() != 0) interrupt.emplace();
    if (!interrupt || !stop) continue;
    period = std::chrono::milliseconds(1);  // a stream may have many short launches
    (*stop)(bytes_of(set));
  }
  end.wait();
  if (interrupt) throw nb::python_error(std::move(*interrupt));
  return end.get();
}

/// Throws if a collective with PE reordering has replaced the caller's program. Launches and
/// symbols would use the wrong program.
void require_own_program(struct dpu_set_t set);

}  // namespace core
