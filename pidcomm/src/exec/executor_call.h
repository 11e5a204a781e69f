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
  std::shared_ptr<const PreparedSweep> prepared{};  // of a TileForm
  std::byte *host = nullptr;
};

/// Whether the host pass of a plan keeps rows or messages in the host buffer.
inline bool needs_host_buffer(const Plan &plan) {
  return std::holds_alternative<MessageForm>(plan.form) ||
         std::holds_alternative<FoldForm>(plan.form);
}

}  // namespace pidcomm
