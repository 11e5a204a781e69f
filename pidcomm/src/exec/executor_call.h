// A call of an executor between its steps. Only for the files that define members of Executor.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "exec/clock.h"
#include "exec/executor.h"

namespace pidcomm {

/// A call. After plan_call, it has a plan.
struct Executor::Call {
  std::optional<RankLocks::Ticket> ticket{};
  Stopwatch total{};
  std::shared_ptr<CachedPlan> cached{};
  std::shared_ptr<Trial> trial{};                   // that times the call, or null
  std::shared_ptr<const PreparedSweep> prepared{};  // of a TileForm
  std::byte *host = nullptr;
};

/// Returns the bytes of rows or messages that a plan keeps in the host buffer. trace: after
/// Executor::prepare.
inline uint64_t host_buffer_bytes(const Plan &plan, const pidcomm_trace &trace) {
  if (const auto *const form = std::get_if<SdkForm>(&plan.form)) return form->staged_bytes;
  const bool keeps =
      std::holds_alternative<MessageForm>(plan.form) || std::holds_alternative<FoldForm>(plan.form);
  return keeps ? trace.bytes_staged : 0;
}

}  // namespace pidcomm
