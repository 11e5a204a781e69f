// The plan of a collective over several hosts: the work of one host, as a value.
//
// A plan is a list of pieces. Each piece has local collectives, then rounds of messages, then local
// collectives. The pieces alternate between two buffers, so that the local collectives of one piece
// can run during the messages of another piece.
//
// Below, N is the number of members of a group on one host, and H the number of hosts. A window
// consists of H host blocks: host block h has the blocks of the N members on host h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pidcomm/hosts.h"
#include "plan/plan.h"

namespace pidcomm {

/// Rows in host memory: `rows` rows of `bytes` bytes, `stride` bytes apart. If set_rows is not 0,
/// each set_rows rows are a set, and the sets are set_stride bytes apart.
struct Area {
  enum class Memory {
    window,
    user,
    pool
  };  // a buffer of the transport, the caller's host buffer, or memory of all hosts
  Memory memory;
  uint64_t offset, rows, bytes, stride;
  uint64_t set_rows = 0, set_stride = 0;

  uint64_t size_bytes() const { return rows * bytes; }
  /// The distance of a row from the first.
  uint64_t row_offset(uint64_t row) const {
    return set_rows == 0 ? row * stride : row / set_rows * set_stride + row % set_rows * stride;
  }
};

/// A local collective: `bytes` per PE, offsets src and dst from the heap base, and its host rows.
struct Local {
  int collective;
  uint64_t bytes, src, dst;
  Area area;
  bool transposes =
      false;  // a gather whose rows are those of an alltoall; see pidcomm_request.host_transposes
};

struct Message {
  uint32_t host;
  bool is_send;
  Area area;
};

/// into = into (op) from[0] (op) from[1] ..., element by element; if `replaces`, into = from[0]
/// (op) from[1] ... All areas have the same size; rows of `from` have the length of those of
/// `into`, or follow one another in one row.
struct Combine {
  Area into;
  std::vector<Area> from;
  bool replaces = false;
};

/// First messages, or a sync of all hosts, or neither; then reductions and copies. If is_on_switch,
/// the switch carries out the reduction, and the hosts only wait.
struct Round {
  std::vector<Message> messages;
  std::vector<Combine> combines;
  bool syncs = false, is_on_switch = false;
};

struct Piece {
  std::vector<Local> before;
  std::vector<Round> rounds;
  std::vector<Local> after;
};

struct HostsPlan {
  Plan whole;  // the collective on one hypercube of the PEs of all hosts: sizes, groups, windows.
               // Only its form is not used
  Hypercube local;
  std::string local_mask;
  Options options{};  // of the local collectives
  uint32_t hosts = 1, host = 0, root = 0;
  std::vector<Piece> pieces;
  std::vector<Local> meanwhile;  // may run at any time after `before` of the first piece
  std::vector<Local> last;       // after all pieces and `meanwhile`
  bool transposes = false;       // the rows of an alltoall are transposed by the sender, else by an
                                 // alltoall of the receiver
  uint64_t window_bytes = 0;     // bytes of Memory::window
  uint64_t pool_bytes = 0;       // bytes of Memory::pool
  pidcomm_transport_kind transport = PIDCOMM_TRANSPORT_MPI;

  bool has_switch() const { return transport == PIDCOMM_TRANSPORT_SWITCH; }

  bool selects_hosts() const { return whole.mask.back() == '1'; }
  /// Whether the call is a local call of each host.
  bool runs_alone() const { return hosts == 1 || !selects_hosts(); }
  /// Whether this host has the rows of the caller.
  bool has_rows() const { return !selects_hosts() || host == root; }
};

/// The hypercube of the PEs of all hosts: the local axes and the axis of the hosts. Errors:
/// ERR_SHAPE.
Hypercube cube_over(const Hypercube &local, uint32_t hosts);

/// Makes the plan of one host. pieces: the wanted number of pieces; a plan has fewer pieces if the
/// collective cannot be cut further. Errors: those of pidcomm_hosts_run that need neither devices
/// nor the other hosts, except errors of local techniques.
HostsPlan make_hosts_plan(const Hypercube &local, uint32_t hosts, uint32_t host,
                          const pidcomm_request &request, uint32_t root, const Options &options,
                          uint64_t heap_base, uint32_t pieces, pidcomm_transport_kind transport);

/// The start of each memory of an Area; null without a memory.
struct Memories {
  std::byte *window = nullptr, *user = nullptr, *pool = nullptr;

  std::byte *at(const Area &area) const {
    std::byte *const start = area.memory == Area::Memory::window ? window
                             : area.memory == Area::Memory::pool ? pool
                                                                 : user;
    return start == nullptr ? nullptr : start + area.offset;
  }
};

/// Returns the request of a local collective. The request borrows the plan's mask.
pidcomm_request local_request(const HostsPlan &plan, const Local &local, const Memories &memories);

/// Throws the error of a local collective, and names the collective over hosts to which it belongs.
[[noreturn]] void fail_local(const HostsPlan &plan, const Local &local, const Error &error);

/// Calls visit(local) for all local collectives, in the order of a run without overlap.
template <class Visit>
void each_local(const HostsPlan &plan, const Visit &visit) {
  const auto all = [&visit](const std::vector<Local> &locals) {
    for (const Local &local : locals) visit(local);
  };
  for (const Piece &piece : plan.pieces) {
    all(piece.before);
    if (&piece == &plan.pieces.front()) all(plan.meanwhile);
    all(piece.after);
  }
  all(plan.last);
}

/// The areas of a pool that a local collective or a reduction of this host reads or writes.
std::vector<const Area *> pool_areas(const HostsPlan &plan, const Local &local, bool is_write);
std::vector<const Area *> pool_areas(const Combine &combine, bool is_write);

/// Bytes and number of the messages of this host in one direction; bytes of a pool that this host
/// writes (as sent) or reads.
struct Traffic {
  uint64_t bytes = 0, messages = 0;
};
Traffic traffic_of(const std::vector<Round> &rounds, bool is_send);
Traffic traffic_of(const HostsPlan &plan, bool is_send);

}  // namespace pidcomm
