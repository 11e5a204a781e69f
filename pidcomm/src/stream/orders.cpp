#include "stream/orders.h"

#include <algorithm>
#include <cstddef>

namespace pidcomm {

namespace {

std::vector<double> longest_paths(const StreamGraph &graph,
                                  const std::vector<PieceSeconds> &seconds) {
  std::vector<double> path_s(seconds.size());
  for (std::size_t piece = seconds.size(); piece-- > 0;) {
    for (const std::size_t next : graph.after(piece))
      path_s[piece] = std::max(path_s[piece], path_s[next]);
    path_s[piece] += seconds[piece].host + seconds[piece].pes;
  }
  return path_s;
}

void order_by_released(const StreamGraph &graph, SchedulePolicy &policy) {
  const std::vector<PieceSeconds> &seconds = policy.seconds;
  std::vector<double> until_s(seconds.size());  // of the host until the next launch
  policy.next_launches.assign(seconds.size(), kNoLaunch);
  for (std::size_t piece = seconds.size(); piece-- > 0;) {
    if (graph.pieces()[piece].is_launch()) {
      policy.next_launches[piece] = piece;
      continue;
    }
    for (const std::size_t next : graph.after(piece)) {
      const std::size_t launch = policy.next_launches[next];
      if (launch == kNoLaunch) continue;
      const double host_s = seconds[piece].host + until_s[next];
      const double ratio = host_s > 0 ? seconds[launch].pes / host_s : 0;
      if (policy.next_launches[piece] != kNoLaunch && ratio <= policy.urgencies[piece]) continue;
      policy.urgencies[piece] = ratio;
      policy.next_launches[piece] = launch;
      until_s[piece] = host_s;
    }
  }
}

}  // namespace

SchedulePolicy policy_of(PassOrder order, const StreamGraph &graph,
                         const std::vector<PieceSeconds> &seconds, bool keeps_host_busy) {
  SchedulePolicy policy{std::vector<double>(seconds.size()), seconds, keeps_host_busy};
  if (order == PassOrder::longest_path) policy.urgencies = longest_paths(graph, seconds);
  if (order == PassOrder::most_released) order_by_released(graph, policy);
  return policy;
}

}  // namespace pidcomm
