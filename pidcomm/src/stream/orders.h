// Orders in which a stream runs the host passes that are ready.
#pragma once

#include <vector>

#include "stream/graph.h"
#include "stream/schedule.h"

namespace pidcomm {

/// recorded: as recorded. longest_path: first the pass whose longest path to the end of the stream
/// takes longest. most_released: first the pass with the most seconds of a launch behind it per
/// second of the host until that launch; it prevents that all launches wait for all passes.
enum class PassOrder { recorded, longest_path, most_released };

/// Returns the urgencies of the pieces for SchedulePolicy. seconds: of the pieces.
std::vector<double> urgencies_of(PassOrder order, const StreamGraph &graph,
                                 const std::vector<PieceSeconds> &seconds);

}  // namespace pidcomm
