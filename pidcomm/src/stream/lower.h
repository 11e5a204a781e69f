// Makes the pieces of recorded steps.
#pragma once

#include <cstdint>

#include "stream/graph.h"
#include "stream/steps.h"

namespace pidcomm {

/// How steps are cut. A step with P recorded parts gets gcd(P, parts) parts; so 0 means P parts.
struct StreamCuts {
  uint32_t rank_groups = 1, parts = 0;
  bool operator==(const StreamCuts &) const = default;
};

/// Returns the pieces of the steps, which must outlive them. ranks: of the set; rank_groups divides
/// them. The results do not depend on the cuts.
StreamGraph lower(const StreamSteps &steps, StreamCuts cuts, uint32_t ranks);

}  // namespace pidcomm
