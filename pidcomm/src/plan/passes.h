// The table of passes. A pass is the work of the line kernels on the lines of one item of a sweep.
#pragma once

#include <cstdint>

namespace pidcomm {

/// X(name, work of an item, transposes, shuffles, combines, host rows read, host rows written,
/// buffered). The six columns after the work of an item are counts for one word of an item.
///
/// These counts are formulas with the following variables: `in` is the number of input streams, and
/// `out` is the number of output streams of an item; `ways` is 2^k; `egs` is the number of
/// entangled groups of a section, and `groups` is the number of groups in a section; `from` is 1 if
/// lines are transposed after loading, else 0; `to` is 1 if lines are transposed before storing,
/// else 0; `host_rows` is the number of transposes for host rows; `merge_shuffles` is the number of
/// shuffles for an output line of `merge`. The lane bits that the mask selects form the lane's
/// index in its group. Rotating a line by s moves the bytes of the lane with index c to the lane
/// with index c + s (mod 2^k). Slot s of a member is block number s of 2^k consecutive blocks.
/// Passes that rotate lines run after PE-assisted reordering. In member_step and
/// member_step_reduce, lane l receives the bytes of lane `map[l]`, where `map` is the sweep's lane
/// map. If member_step_reduce has one stream, it combines each line with a copy of the line whose
/// lanes have moved, and transposes both of these lines. The counts of reduce_rows are upper
/// limits: the pass transposes once for several streams or entangled groups with equal rows (see
/// RowBundle).
// clang-format off
#define PIDCOMM_PASSES(X)                                                                         \
  X(transpose,                                                                                    \
    "load 2^k lines, exchange selected lane bits with line bits in registers, store 2^k "         \
    "lines",                                                                                      \
    0, in * k, 0, 0, 0, 0)                                                                        \
  X(replicate,                                                                                    \
    "load one line; store each of its 2^k selected lanes, spread over its group's lanes, at"      \
    " every member",                                                                              \
    0, k > 0 ? ways : 0, 0, 0, 0, 0)                                                              \
  X(reduce_blocks,                                                                                \
    "load 2^k lines of every member, accumulate, transpose in registers, combine, store one"      \
    " line",                                                                                      \
    in * from + to, ways * k, in - 1, 0, 0, 0)                                                    \
  X(reduce_lanes,                                                                                 \
    "load one line per member, accumulate, combine over the selected lanes, store it at "         \
    "every member",                                                                               \
    in * from + to, k, in - 1 + k, 0, 0, 0)                                                       \
  X(reduce_to_host,                                                                               \
    "load one line per member, accumulate, combine over the selected lanes, store to the "        \
    "host rows",                                                                                  \
    host_rows, k, in - 1 + k, 0, 8 / ways, 0)                                                     \
  X(merge,                                                                                        \
    "load the 1 to 8 lines whose lanes make up an output line (alltoall: up to 8 output "         \
    "lines), shuffle and combine them, store the line",                                           \
    0, merge_shuffles * out, 0, 0, 0, 0)                                                          \
  X(reduce_rows,                                                                                  \
    "load the lines of all members, transpose to host order, combine words into a row per "       \
    "group (reduce_scatter: per PE), store lines",                                                \
    in + egs, 3 * (in + egs), in, 0, 0, egs)                                                      \
  X(reduce_rows_to_host,                                                                          \
    "load the lines of all members, transpose to host order, combine the words of each "          \
    "group, store to the host rows",                                                              \
    in, 3 * in, in, 0, groups, 0)                                                                 \
  X(to_host,                                                                                      \
    "load 8 lines of each entangled group, transpose to host order, store 64 bytes to each "      \
    "of 8 host rows",                                                                             \
    egs, 3 * egs, 0, 0, 8 * egs, 0)                                                               \
  X(from_host,                                                                                    \
    "load 64 bytes of each of 8 host rows, transpose to PIM order, store 8 lines to each "        \
    "member",                                                                                     \
    egs, 3 * egs, 0, 8 * egs, 0, 0)                                                               \
  X(rotate, "load 2^k lines, rotate line s by s lanes, store 2^k lines",                          \
    in * from + out * to, k > 0 ? in : 0, 0, 0, 0, 0)                                             \
  X(replicate_rotated,                                                                            \
    "load one line; store it rotated by s lanes as slot s of every member, for each of the "      \
    "2^k s",                                                                                      \
    from + ways * to, ways, 0, 0, 0, 0)                                                           \
  X(reduce_rotated,                                                                               \
    "load 2^k lines of every member, accumulate each slot s, rotate it by s lanes, combine,"      \
    " store one line",                                                                            \
    in * from + to, ways, in - 1, 0, 0, 0)                                                        \
  X(reduce_rotated_replicate,                                                                     \
    "load 2^k lines of every member, accumulate each slot s, rotate it by s lanes, combine; "     \
    "store the result rotated by s as slot s of every member",                                    \
    in * from + to, 2 * ways, in - 1, 0, 0, 0)                                                    \
  X(reduce_rotated_to_host,                                                                       \
    "load 2^k lines of every member, accumulate each slot s, rotate it by s lanes, combine,"      \
    " store to the host rows",                                                                    \
    host_rows, ways, in - 1, 0, 8, 0)                                                             \
  X(member_step, "load one line, move its lanes, store it",                                       \
    from + to, 1, 0, 0, 0, 0)                                                                     \
  X(member_step_reduce, "load two lines, move the lanes of the second, combine, store one line",  \
    2 * from + to, 1, 1, 0, 0, 0)
// clang-format on
enum class Pass {
#define PIDCOMM_ROW(name, ...) name,
  PIDCOMM_PASSES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
};
#define PIDCOMM_ROW(...) +1
inline constexpr int kPasses = 0 PIDCOMM_PASSES(PIDCOMM_ROW);
#undef PIDCOMM_ROW

/// A byte of the lane maps of `merge`: no lane of the source moves to the lane of this byte.
inline constexpr uint64_t kNoLane = 0x80;

/// The largest number of items in lockstep.
inline constexpr uint32_t kMaxItems = 8;

/// Items in lockstep with at most this number of streams together have few streams.
inline constexpr uint32_t kFewStreams = 8;

/// Items in lockstep with at least this number of streams together, with blocks of at least this
/// number of words, take more time than half of the items in lockstep.
inline constexpr uint32_t kManyStreams = 32, kLongWords = 32;

}  // namespace pidcomm
