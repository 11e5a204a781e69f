#include "hosts/plan.h"

#include <algorithm>

#include "hosts/piece_maker.h"
#include "pidcomm/messages.h"

namespace pidcomm {

namespace {

/// Adds the pieces of one collective with messages between the hosts.
class MessagePieces : public PieceMaker {
 public:
  using PieceMaker::PieceMaker;

  /// For the host blocks of the other hosts: gather, exchange, scatter. With `tile` and `auto` the
  /// gather transposes blocks; then a piece has whole host blocks of some hosts. Other techniques
  /// end with an alltoall in place; then a piece is a range of all host blocks. In place, a window
  /// is read before the same window is written: there is one piece, or piece j of a host block
  /// takes the place of piece j.
  void alltoall() {
    const bool transposes = may_transpose();
    const uint32_t pieces = !transposes    ? pieces_of(host_block_)
                            : src_ == dst_ ? 1
                                           : std::min(wanted_, others());
    const uint32_t most =
        transposes ? (others() + pieces - 1) / pieces : others();  // hosts of a piece
    const uint64_t slot = most * groups_ * members() *
                          (transposes ? host_block_ : cut(host_block_, pieces, pieces - 1).bytes);
    const uint32_t buffers = std::min(pieces, 2u);
    plan_.transposes = transposes;
    for (uint32_t j = 0; j < pieces; ++j) {
      const Range range = transposes ? Range{0, host_block_} : cut(host_block_, pieces, j);
      const uint32_t first = transposes ? others() * j / pieces : 0,
                     end = transposes ? others() * (j + 1) / pieces : others();
      Piece &piece = plan_.pieces.emplace_back();
      Round &round = piece.rounds.emplace_back();
      for (uint32_t n = first; n < end; ++n) {
        const uint64_t size = groups_ * members() * range.bytes,
                       at = j % buffers * slot + (n - first) * size;
        const Area out = window(at, 1, size), in = window(buffers * slot + at, 1, size);
        piece.before.push_back({PIDCOMM_GATHER, range.bytes,
                                src_ + host_block_ * to(n) + range.offset, 0, out, transposes});
        exchange(round, n, out, in);
        piece.after.push_back(
            {PIDCOMM_SCATTER, range.bytes, 0, dst_ + host_block_ * from(n) + range.offset, in});
      }
    }
    add_local_alltoalls(transposes);
  }

  /// A local reduce for the host block of each host; each host reduces its host block over the
  /// hosts, and scatters it.
  void reduce_scatter() {
    const uint32_t pieces = pieces_of(host_block_);
    const uint32_t buffers = std::min(pieces, 2u);
    const uint64_t own = groups_ * host_block_,
                   slot = others() * groups_ * cut(host_block_, pieces, pieces - 1).bytes;
    const Area result = window(0, groups_, host_block_);
    for (uint32_t j = 0; j < pieces; ++j) {
      const Range range = cut(host_block_, pieces, j);
      const uint64_t size = groups_ * range.bytes;
      Piece &piece = plan_.pieces.emplace_back();
      Round &round = piece.rounds.emplace_back();
      std::vector<Area> received(plan_.hosts);
      for (uint32_t n = 0; n < others(); ++n) {
        const Area out = window(own + j % buffers * slot + n * size, 1, size);
        received[from(n)] = window(own + (buffers + j % buffers) * slot + n * size, 1, size);
        piece.before.push_back(
            {PIDCOMM_REDUCE, range.bytes, src_ + host_block_ * to(n) + range.offset, 0, out});
        exchange(round, n, out, received[from(n)]);
      }
      if (j == 0)
        piece.before.push_back(
            {PIDCOMM_REDUCE, host_block_, src_ + host_block_ * plan_.host, 0, result});
      Area into = result;
      into.offset += range.offset;
      into.bytes = range.bytes;
      combine(round, into, received);
    }
    plan_.last.push_back({PIDCOMM_SCATTER, block_, 0, dst_, result});
  }

  /// Local reduce; each host reduces a chunk of the rows over the hosts and sends it to all hosts;
  /// local broadcast.
  void allreduce() {
    const uint32_t pieces = pieces_of(bytes_);
    const uint32_t buffers = std::min(pieces, 2u);
    const uint64_t slot = groups_ * cut(bytes_, pieces, pieces - 1).bytes;
    const uint64_t received =
        others() * (slot / plan_.hosts + kLineBytes);  // chunks of all other hosts
    for (uint32_t j = 0; j < pieces; ++j) {
      const Range range = cut(bytes_, pieces, j);
      const Area rows = window(j % buffers * slot, 1, groups_ * range.bytes);
      Piece &piece = plan_.pieces.emplace_back();
      piece.before.push_back({PIDCOMM_REDUCE, range.bytes, src_ + range.offset, 0, rows});
      reduce_chunks(piece, rows, buffers * slot + j % buffers * received);
      Round &round = piece.rounds.emplace_back();
      for (uint32_t n = 0; n < others(); ++n)
        exchange(round, n, chunk(rows, plan_.host), chunk(rows, from(n)));
      piece.after.push_back({PIDCOMM_BROADCAST, range.bytes, 0, dst_ + range.offset, rows});
    }
  }

  /// Local gather; each host sends its rows to all hosts; a local broadcast of the rows of each
  /// host.
  void allgather() {
    const uint64_t size = groups_ * host_block_;
    const auto rows_of = [&](uint32_t host) { return window(host * size, 1, size); };
    const uint32_t pieces = std::min(wanted_, others());
    for (uint32_t j = 0; j < pieces; ++j) {
      Piece &piece = plan_.pieces.emplace_back();
      Round &round = piece.rounds.emplace_back();
      for (uint32_t n = others() * j / pieces; n < others() * (j + 1) / pieces; ++n) {
        exchange(round, n, rows_of(plan_.host), rows_of(from(n)));
        piece.after.push_back(
            {PIDCOMM_BROADCAST, host_block_, 0, dst_ + host_block_ * from(n), rows_of(from(n))});
      }
    }
    plan_.pieces.front().before.push_back({PIDCOMM_GATHER, block_, src_, 0, rows_of(plan_.host)});
    plan_.meanwhile.push_back(
        {PIDCOMM_BROADCAST, host_block_, 0, dst_ + host_block_ * plan_.host, rows_of(plan_.host)});
  }

  /// The root sends each host its host block of every row. The root's local collective uses the
  /// caller's rows.
  void scatter() {
    Piece &piece = plan_.pieces.emplace_back();
    Round &round = piece.rounds.emplace_back();
    if (is_root()) {
      for (uint32_t n = 0; n < others(); ++n) add(round, to(n), true, user_host_block(to(n)));
      plan_.meanwhile.push_back({PIDCOMM_SCATTER, bytes_, 0, dst_, user_host_block(plan_.host)});
    } else {
      const Area rows = window(0, groups_, host_block_);
      add(round, plan_.root, false, rows);
      piece.after.push_back({PIDCOMM_SCATTER, bytes_, 0, dst_, rows});
    }
  }

  void gather() {
    Piece &piece = plan_.pieces.emplace_back();
    Round &round = piece.rounds.emplace_back();
    if (is_root()) {
      for (uint32_t n = 0; n < others(); ++n) add(round, from(n), false, user_host_block(from(n)));
      plan_.meanwhile.push_back({PIDCOMM_GATHER, bytes_, src_, 0, user_host_block(plan_.host)});
    } else {
      const Area rows = window(0, groups_, host_block_);
      piece.before.push_back({PIDCOMM_GATHER, bytes_, src_, 0, rows});
      add(round, plan_.root, true, rows);
    }
  }

  /// Local reduce; each host reduces a chunk of the rows over the hosts and sends it to the root.
  void reduce() {
    const Area rows = own_rows();
    Piece &piece = plan_.pieces.emplace_back();
    piece.before.push_back({PIDCOMM_REDUCE, bytes_, src_, 0, rows});
    reduce_chunks(piece, rows, is_root() ? 0 : rows.size_bytes());
    Round &round = piece.rounds.emplace_back();
    if (!is_root()) add(round, plan_.root, true, chunk(rows, plan_.host));
    if (is_root())
      for (uint32_t n = 0; n < others(); ++n) add(round, from(n), false, chunk(rows, from(n)));
  }

  /// The root sends each host a chunk of the rows; each host sends its chunk to all hosts; local
  /// broadcast.
  void broadcast() {
    const Area rows = own_rows();
    Piece &piece = plan_.pieces.emplace_back();
    piece.rounds.resize(2);
    if (!is_root()) add(piece.rounds[0], plan_.root, false, chunk(rows, plan_.host));
    for (uint32_t n = 0; n < others(); ++n) {
      if (is_root()) add(piece.rounds[0], to(n), true, chunk(rows, to(n)));
      if (to(n) != plan_.root) add(piece.rounds[1], to(n), true, chunk(rows, plan_.host));
      if (!is_root()) add(piece.rounds[1], from(n), false, chunk(rows, from(n)));
    }
    (is_root() ? plan_.meanwhile : piece.after)
        .push_back({PIDCOMM_BROADCAST, bytes_, 0, dst_, rows});
  }

 private:
  /// The rows of all groups, on the root those of the caller.
  Area own_rows() {
    const uint64_t size = groups_ * bytes_;
    return is_root() ? Area{Area::Memory::user, 0, 1, size, size} : window(0, 1, size);
  }
  static void add(Round &round, uint32_t host, bool is_send, const Area &area) {
    if (area.size_bytes() != 0) round.messages.push_back({host, is_send, area});
  }
  void exchange(Round &round, uint32_t n, const Area &out, const Area &in) const {
    add(round, from(n), false, in);
    add(round, to(n), true, out);
  }

  /// A round in which every host receives its chunk of the rows of all hosts, and combines them.
  /// received_offset: where the chunks go.
  void reduce_chunks(Piece &piece, const Area &rows, uint64_t received_offset) {
    Round &round = piece.rounds.emplace_back();
    const Area own = chunk(rows, plan_.host);
    std::vector<Area> received(plan_.hosts);
    for (uint32_t n = 0; n < others(); ++n) {
      received[from(n)] = window(received_offset + n * own.bytes, 1, own.bytes);
      exchange(round, n, chunk(rows, to(n)), received[from(n)]);
    }
    combine(round, own, received);
  }

  /// Combines in ascending order of the hosts. `own` has the value of this host and becomes the
  /// result.
  void combine(Round &round, const Area &own, const std::vector<Area> &received) const {
    if (own.size_bytes() == 0) return;
    const uint32_t host = plan_.host;
    for (uint32_t h = 1; h < host; ++h) round.combines.push_back({received[0], {received[h]}});
    if (host != 0) round.combines.push_back({own, {received[0]}});
    for (uint32_t h = host + 1; h < plan_.hosts; ++h)
      round.combines.push_back({own, {received[h]}});
  }
};

/// Leaves out a PE scratch that is not valid for `auto`, whose techniques need at most the size of
/// a PE's input.
void leave_out_wrong_scratch(HostsPlan &plan) {
  try {
    checked_scratch(plan.whole, plan.whole.in_pe_bytes);
  } catch (const Error &) {
    plan.options.scratch_offset = 0;
  }
}

/// The PE scratch of a local collective must not overlap the windows of the whole call.
void check_scratch_of_locals(const HostsPlan &plan, uint64_t heap_base) {
  each_local(plan, [&](const Local &one) {
    try {
      const Plan local =
          make_plan(plan.local, local_request(plan, one, {}), plan.options, heap_base);
      const PeSteps *const pes = pe_steps_of(local);
      if (pes != nullptr && pes->scratch_bytes != 0)
        checked_scratch(plan.whole, pes->scratch_bytes);
    } catch (const Error &error) {
      fail_local(plan, one, error);
    }
  });
}

}  // namespace

Hypercube cube_over(const Hypercube &local, uint32_t hosts) {
  std::vector<uint32_t> lengths;
  for (const Axis &axis : local.axes) lengths.push_back(axis.length);
  lengths.push_back(hosts);
  return Hypercube::of(lengths, local.order);
}

HostsPlan make_hosts_plan(const Hypercube &local, uint32_t hosts, uint32_t host,
                          const pidcomm_request &request, uint32_t root, const Options &options,
                          uint64_t heap_base, uint32_t pieces, pidcomm_transport_kind transport) {
  if (request.collective == PIDCOMM_SENDRECV)
    fail(PIDCOMM_ERR_ARGUMENT, name_of_collective(request.collective),
         " moves messages between the PEs of one host; make the call on a hypercube of the host");
  if (is_scan(request.collective) || request.operation != nullptr)
    fail(PIDCOMM_ERR_ARGUMENT, name_of_collective(request.collective),
         is_scan(request.collective) ? "" : " with an operation",
         " combines PEs of one host; call it on a hypercube of one host");
  HostsPlan plan;
  plan.transport = transport;
  Options checked = options;
  checked.technique = PIDCOMM_TECHNIQUE_TILE;  // runs all collectives on all shapes; the local
                                               // collectives check their techniques
  plan.whole = make_plan(cube_over(local, hosts), request, checked, heap_base);
  plan.local = local;
  plan.options = options;
  plan.local_mask = plan.whole.mask.substr(0, local.axes.size());
  plan.hosts = hosts;
  plan.host = host;
  plan.root = plan.selects_hosts() ? root : 0;
  if (plan.root >= hosts)
    fail(PIDCOMM_ERR_ARGUMENT, "root (", root, ") must be below the number of hosts (", hosts, ")");
  const auto &whole = plan.whole;
  if (plan.runs_alone()) {
    const uint64_t rows = whole.grouping.groups / (plan.selects_hosts() ? 1 : hosts),
                   bytes = whole.in_row_bytes + whole.out_row_bytes;
    plan.last.push_back(
        {request.collective,
         request.bytes,
         request.src,
         request.dst,
         {Area::Memory::user, 0, rows, bytes, bytes == 0 ? 0 : whole.row_stride_bytes}});
    return plan;
  }
  if (request.host_stride != 0 || request.host_transposes != 0)
    fail(PIDCOMM_ERR_HOST_BUFFER, name_of_collective(request.collective),
         " over hosts needs contiguous host rows: host_stride (", request.host_stride,
         ") and host_transposes (", request.host_transposes, ") must be 0");
  if (whole.bytes == 0) return plan;
  const uint32_t wanted = std::max(pieces, 1u);
  if (plan.transport != PIDCOMM_TRANSPORT_MPI) {
    make_pool_pieces(plan, request, wanted);
  } else {
    MessagePieces maker(plan, request, wanted);
    make_pieces(maker, request.collective);
  }
  if (options.scratch_offset == 0) return plan;
  if (options.technique == PIDCOMM_TECHNIQUE_AUTO)
    leave_out_wrong_scratch(plan);
  else
    check_scratch_of_locals(plan, heap_base);
  return plan;
}

pidcomm_request local_request(const HostsPlan &plan, const Local &local, const Memories &memories) {
  pidcomm_request request{};
  request.collective = local.collective;
  request.mask = plan.local_mask.c_str();
  request.bytes = local.bytes;
  request.src = local.src;
  request.dst = local.dst;
  request.type = plan.whole.type.code;
  request.op = plan.whole.op;
  const CollectiveRule &rule = rule_of(local.collective);
  if (rule.in.space == Space::mram && rule.out.space == Space::mram) return request;
  const Area &area = local.area;
  request.host = memories.at(area);
  request.host_stride = area.rows > 1 && area.stride != area.bytes ? area.stride : 0;
  request.host_transposes = local.transposes ? 1 : 0;
  request.host_bytes = area.rows == 0 ? 0 : (area.rows - 1) * area.stride + area.bytes;
  return request;
}

void fail_local(const HostsPlan &plan, const Local &local, const Error &error) {
  if (plan.runs_alone()) throw error;
  fail(error.status(), name_of_collective(plan.whole.collective), " over ", plan.hosts,
       " hosts has a local ", name_of_collective(local.collective), " on each: ", error.what());
}

std::vector<const Area *> pool_areas(const HostsPlan &plan, const Local &local, bool is_write) {
  const CollectiveRule &rule = rule_of(local.collective);
  const bool has_rows = (is_write ? rule.out : rule.in).space == Space::host;
  if (plan.transport == PIDCOMM_TRANSPORT_MPI || !has_rows ||
      local.area.memory != Area::Memory::pool)
    return {};
  return {&local.area};
}

std::vector<const Area *> pool_areas(const Combine &combine, bool is_write) {
  std::vector<const Area *> areas;
  const auto add = [&areas](const Area &area) {
    if (area.memory == Area::Memory::pool) areas.push_back(&area);
  };
  if (is_write || !combine.replaces) add(combine.into);
  if (!is_write)
    for (const Area &from : combine.from) add(from);
  return areas;
}

Traffic traffic_of(const std::vector<Round> &rounds, bool is_send) {
  Traffic traffic;
  for (const Round &round : rounds) {
    for (const Message &message : round.messages)
      if (message.is_send == is_send) {
        traffic.bytes += message.area.size_bytes();
        ++traffic.messages;
      }
    if (round.is_on_switch) continue;
    for (const Combine &combine : round.combines)
      for (const Area *area : pool_areas(combine, is_send)) traffic.bytes += area->size_bytes();
  }
  return traffic;
}

Traffic traffic_of(const HostsPlan &plan, bool is_send) {
  Traffic traffic;
  for (const Piece &piece : plan.pieces) {
    const Traffic more = traffic_of(piece.rounds, is_send);
    traffic.bytes += more.bytes;
    traffic.messages += more.messages;
  }
  each_local(plan, [&](const Local &local) {
    for (const Area *area : pool_areas(plan, local, is_send)) traffic.bytes += area->size_bytes();
  });
  return traffic;
}

}  // namespace pidcomm
