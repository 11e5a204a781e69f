// The passes: what the line kernels do with the lines of one item of a sweep.
#pragma once

#include <cstdint>

namespace pidcomm {

/// What one item does with its lines.
/// For `tile`:
///   transpose      2^k lines -> 2^k lines, selected lane bits exchanged with line index bits (alltoall)
///   replicate      1 line -> 2^k lines per destination, each with one selected lane everywhere (allgather)
///   reduce_blocks    members x 2^k lines -> 1 line: accumulate, transpose, combine (reduce_scatter)
///   reduce_lanes     member lines -> 1 line: accumulate, combine over the selected lanes, to every member (allreduce)
///   reduce_to_host   the same, out to the host rows of the groups (reduce)
/// For all:
///   to_host        lines -> 8 host rows (gather)
///   from_host      8 host rows -> lines (scatter; broadcast, where lanes of a group share a row and lines go to every member)
/// After PE-assisted reordering. Rotating a line by s moves what the lane of index c in its group holds to the lane of index c + s (mod
/// 2^k), where a lane's index is made of its selected bits. Slot s of a member is block s of some 2^k.
///   rotate                 2^k lines -> 2^k lines, line s rotated by s (alltoall; with k = 0 a copy)
///   replicate_rotated         1 line -> 2^k lines per destination, line s rotated by s (allgather)
///   reduce_rotated           members x 2^k lines -> 1 line: accumulate each slot, rotate slot s by s, combine (reduce_scatter)
///   reduce_rotated_replicate    the same, and line s of every destination is the result rotated by s (allreduce)
///   reduce_rotated_to_host   the same, out to 8 pieces of host rows (reduce)
/// From member to member, lane l taking what lane `map[l]` of the sweep has:
///   member_step            1 line -> 1 line: the lanes moved
///   member_step_reduce     2 lines -> 1 line: the second, its lanes moved, combined with the first (1 line: with itself)
#define PIDCOMM_PASSES(X)                                                                                                            \
  X(transpose)                                                                                                                       \
  X(replicate)                                                                                                                       \
  X(reduce_blocks)                                                                                                                   \
  X(reduce_lanes)                                                                                                                    \
  X(reduce_to_host)                                                                                                                  \
  X(to_host)                                                                                                                         \
  X(from_host) X(rotate) X(replicate_rotated) X(reduce_rotated) X(reduce_rotated_replicate) X(reduce_rotated_to_host) X(member_step) \
      X(member_step_reduce)
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
