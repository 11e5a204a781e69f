// Orders in which a stream runs the host passes that are ready.
#pragma once

#include <vector>

#include "stream/graph.h"
#include "stream/schedule.h"

namespace pidcomm {

/// recorded: as recorded. longest_path: first the pass whose longest path to the end of the stream
/// takes longest. most_released: first the pass with the most seconds of a launch behind it per
/// second of the host until that launch; it prevents that all launches wait for all passes. Passes
/// whose launch still waits for other launches come last.
enum class PassOrder { recorded, longest_path, most_released };

/// Returns the policy of an order. seconds: of the pieces.
SchedulePolicy policy_of(PassOrder order, const StreamGraph &graph,
                         const std::vector<PieceSeconds> &seconds, bool keeps_host_busy);

}  // namespace pidcomm
