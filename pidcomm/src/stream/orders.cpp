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

std::vector<double> released(const StreamGraph &graph, const std::vector<PieceSeconds> &seconds) {
  std::vector<PieceSeconds> next_launch(seconds.size());  // host: until it; pes: of it
  std::vector<double> ratios(seconds.size());
  for (std::size_t piece = seconds.size(); piece-- > 0;) {
    if (graph.pieces()[piece].is_launch()) {
      next_launch[piece] = {0, seconds[piece].pes};
      continue;
    }
    for (const std::size_t next : graph.after(piece)) {
      const double host_s = seconds[piece].host + next_launch[next].host;
      const double ratio = host_s > 0 ? next_launch[next].pes / host_s : 0;
      if (ratio <= ratios[piece]) continue;
      ratios[piece] = ratio;
      next_launch[piece] = {host_s, next_launch[next].pes};
    }
  }
  return ratios;
}

}  // namespace

std::vector<double> urgencies_of(PassOrder order, const StreamGraph &graph,
                                 const std::vector<PieceSeconds> &seconds) {
  switch (order) {
    case PassOrder::longest_path:
      return longest_paths(graph, seconds);
    case PassOrder::most_released:
      return released(graph, seconds);
    default:
      return std::vector<double>(seconds.size());
  }
}

}  // namespace pidcomm
