// What the two makers of pieces share: the one with messages (plan.cpp) and the one through a pool
// (plan_pool.cpp). A maker has a method for each kind of collective, which adds the pieces to a
// plan.
#pragma once

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "base/geometry.h"
#include "hosts/plan.h"

namespace pidcomm {

/// Range `index` of `count` nearly equal ranges of a size.
struct Range {
  uint64_t offset, bytes;
};

/// Cuts at multiples of 64 bytes if the size is such a multiple, because some techniques need them.
inline Range cut(uint64_t bytes, uint64_t count, uint64_t index) {
  const uint64_t unit = bytes % kLineBytes == 0 ? kLineBytes : kWordBytes, units = bytes / unit;
  const uint64_t begin = units * index / count, end = units * (index + 1) / count;
  return {begin * unit, (end - begin) * unit};
}

/// The sizes of a collective over more than one host, and the order in which a host serves the
/// others. `wanted` is the number of pieces.
class PieceMaker {
 public:
  PieceMaker(HostsPlan &plan, const pidcomm_request &request, uint32_t wanted)
      : plan_(plan),
        groups_(plan.whole.grouping.groups),
        bytes_(plan.whole.bytes),
        block_(plan.whole.block_bytes),
        host_block_(block_ * (plan.whole.grouping.group_pes / plan.hosts)),
        src_(request.src),
        dst_(is_in_place(plan.whole) ? request.src : request.dst),
        wanted_(wanted) {}

 protected:
  uint32_t others() const { return plan_.hosts - 1; }
  uint64_t members() const { return plan_.whole.grouping.group_pes / plan_.hosts; }
  /// Whether a gather can transpose blocks. `auto` then runs this gather as `tile`.
  bool may_transpose() const {
    const int technique = plan_.options.technique;
    return members() > 1 &&
           (technique == PIDCOMM_TECHNIQUE_TILE || technique == PIDCOMM_TECHNIQUE_AUTO);
  }
  bool is_root() const { return plan_.host == plan_.root; }
  /// Exchange n sends to the n-th next host and receives from the n-th previous host, so that all
  /// links are used evenly.
  uint32_t to(uint32_t n) const { return (plan_.host + 1 + n) % plan_.hosts; }
  uint32_t from(uint32_t n) const { return (plan_.host + plan_.hosts - 1 - n) % plan_.hosts; }

  uint32_t pieces_of(uint64_t bytes) const {
    return static_cast<uint32_t>(std::min<uint64_t>(wanted_, bytes / kLineBytes + 1));
  }

  /// Two values of a request can give the same window: an offset from the heap, and an MRAM byte.
  static bool is_in_place(const Plan &plan) {
    return plan.in_pe_bytes != 0 && plan.out_pe_bytes != 0 && plan.src == plan.dst;
  }

  Area window(uint64_t offset, uint64_t rows, uint64_t bytes) {
    plan_.window_bytes = std::max(plan_.window_bytes, offset + rows * bytes);
    return {Area::Memory::window, offset, rows, bytes, bytes};
  }
  /// The host blocks of a host in the caller's rows.
  Area user_host_block(uint32_t host) const {
    return {Area::Memory::user, host_block_ * host, groups_, host_block_,
            host_block_ * plan_.hosts};
  }
  Area chunk(const Area &rows, uint32_t host) const {
    const Range range = cut(rows.size_bytes(), plan_.hosts, host);
    return {rows.memory, rows.offset + range.offset, 1, range.bytes, range.bytes};
  }

  /// Adds the local alltoalls of an alltoall: the host's own host block moves during the exchanges.
  /// Host blocks of other hosts follow at the end, unless the exchanges transpose them.
  void add_local_alltoalls(bool transposes) {
    plan_.meanwhile.push_back({PIDCOMM_ALLTOALL,
                               host_block_,
                               src_ + host_block_ * plan_.host,
                               dst_ + host_block_ * plan_.host,
                               {}});
    if (transposes || members() == 1) return;
    for (uint32_t n = 0; n < others(); ++n) {
      const uint64_t at = dst_ + host_block_ * from(n);
      plan_.last.push_back({PIDCOMM_ALLTOALL, host_block_, at, at, {}});
    }
  }

  HostsPlan &plan_;
  const uint64_t groups_, bytes_, block_, host_block_, src_, dst_;
  const uint32_t wanted_;
};

/// Returns the first collective whose row has the same operator column, memories and numbers of
/// blocks. These columns determine which blocks a collective moves to which members, and whether it
/// reduces them, so both collectives have the same pieces.
inline int collective_like(int collective) {
  const auto columns_of = [](const CollectiveRule &rule) {
    return std::tuple(rule.reduces, rule.in.space, rule.in.per_member, rule.out.space,
                      rule.out.per_member);
  };
#define PIDCOMM_ROW(ENUM, code, ...) \
  if (columns_of(rule_of(code)) == columns_of(rule_of(collective))) return code;
  PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  return collective;
}

/// Calls the method of a maker that adds the pieces of a collective. Errors: ERR_ARGUMENT (no
/// method is for a row with these columns).
void make_pieces(auto &maker, int collective) {
  const int method = collective_like(collective);
#define PIDCOMM_ROW(ENUM, code, name, ...)                         \
  if (method == code) {                                            \
    if constexpr (requires { maker.name(); }) return maker.name(); \
  }
  PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  fail(PIDCOMM_ERR_ARGUMENT, name_of_collective(collective),
       " has no algorithm over several hosts");
}

/// Adds the pieces through shared memory; see plan_pool.cpp.
void make_pool_pieces(HostsPlan &plan, const pidcomm_request &request, uint32_t wanted);

}  // namespace pidcomm
