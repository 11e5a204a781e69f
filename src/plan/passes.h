// The passes: what the line kernels do with the lines of one item of a sweep.
#pragma once

#include <cstdint>

namespace pidcomm {

/// What one item does with its lines.
/// For `tile`:
///   transpose      2^k lines -> 2^k lines, selected lane bits exchanged with line index bits (alltoall)
///   spread         1 line -> 2^k lines per destination, each with one selected lane everywhere (allgather)
///   fold_blocks    members x 2^k lines -> 1 line: accumulate, transpose, combine (reduce_scatter)
///   fold_lanes     member lines -> 1 line: accumulate, combine over the selected lanes, to every member (allreduce)
///   fold_to_host   the same, out to the host rows of the groups (reduce)
/// For all:
///   to_host        lines -> 8 host rows (gather)
///   from_host      8 host rows -> lines (scatter; broadcast, where lanes of a group share a row and lines go to every member)
/// After PE-assisted reordering. Rotating a line by s moves what the lane of rank c in its group holds to the lane of rank c + s (mod 2^k),
/// where a lane's rank is made of its selected bits. Slot s of a member is block s of some 2^k.
///   rotate                 2^k lines -> 2^k lines, line s rotated by s (alltoall; with k = 0 a copy)
///   spread_rotated         1 line -> 2^k lines per destination, line s rotated by s (allgather)
///   fold_rotated           members x 2^k lines -> 1 line: accumulate each slot, rotate slot s by s, combine (reduce_scatter)
///   fold_rotated_spread    the same, and line s of every destination is the result rotated by s (allreduce)
///   fold_rotated_to_host   the same, out to 8 pieces of host rows (reduce)
/// From member to member, lane l taking what lane `map[l]` of the sweep has:
///   hop                    1 line -> 1 line: the lanes moved
///   hop_fold               2 lines -> 1 line: the second, its lanes moved, combined with the first (1 line: with itself)
#define PIDCOMM_PASSES(X) \
  X(transpose)            \
  X(spread)               \
  X(fold_blocks)          \
  X(fold_lanes)           \
  X(fold_to_host)         \
  X(to_host) X(from_host) X(rotate) X(spread_rotated) X(fold_rotated) X(fold_rotated_spread) X(fold_rotated_to_host) X(hop) X(hop_fold)
enum class Pass {
#define PIDCOMM_ROW(name) name,
  PIDCOMM_PASSES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
};
#define PIDCOMM_ROW(name) +1
inline constexpr int kPasses = 0 PIDCOMM_PASSES(PIDCOMM_ROW);
#undef PIDCOMM_ROW

/// Items that are carried out in lockstep at most.
inline constexpr uint32_t kMaxItems = 8;

}  // namespace pidcomm
