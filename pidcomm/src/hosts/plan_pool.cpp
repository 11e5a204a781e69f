// Plans over hosts through a pool: a local pass writes rows once into the pool, all hosts sync, and
// local passes of all hosts read them where they are. Rows travel twice over a port of the pool,
// whatever the number of hosts, and no byte is copied in host memory.
//
// The number of pieces and of syncs depends only on what all hosts have in common. Pieces use two
// parts of the pool in turn: a host that writes piece j + 2 has passed the sync of piece j + 1, and
// so all hosts have read piece j.
#include "hosts/plan_steps.h"

namespace pidcomm {

namespace {

class PoolMaker : public PlanMaker {
 public:
  using PlanMaker::PlanMaker;

  /// For the parts of the other hosts: gather, sync, scatter. In one piece, the gather of `tile`
  /// transposes blocks. Otherwise the steps end with an alltoall in place of each part, and piece j
  /// of a part takes the place of piece j.
  void alltoall() {
    const uint32_t pieces = pieces_of(part_);
    const bool transposes =
        plan_.options.technique == PIDCOMM_TECHNIQUE_TILE && members() > 1 && wanted_ == 1;
    const uint64_t rows = groups_ * members(),
                   slot = plan_.hosts * others() * rows * largest(part_, pieces);
    reserve(pieces, slot);
    plan_.transposes = transposes;
    for (uint32_t j = 0; j < pieces; ++j) {
      const Cut piece = cut(part_, pieces, j);
      Piece &steps = plan_.pieces.emplace_back();
      const auto rows_of = [&](uint32_t sender, uint32_t n) {
        const uint64_t size = rows * piece.bytes;
        return pool(j % 2 * slot + (uint64_t{sender} * others() + n) * size, 1, size);
      };
      for (uint32_t n = 0; n < others(); ++n) {
        steps.before.push_back({PIDCOMM_GATHER, piece.bytes, src_ + part_ * to(n) + piece.offset, 0,
                                rows_of(plan_.host, n), transposes});
        steps.after.push_back({PIDCOMM_SCATTER, piece.bytes, 0,
                               dst_ + part_ * from(n) + piece.offset, rows_of(from(n), n)});
      }
      sync(steps);
    }
    plan_.meanwhile.push_back(
        {PIDCOMM_ALLTOALL, part_, src_ + part_ * plan_.host, dst_ + part_ * plan_.host, {}});
    if (transposes || members() == 1) return;
    for (uint32_t n = 0; n < others(); ++n) {
      const uint64_t at = dst_ + part_ * from(n);
      plan_.last.push_back({PIDCOMM_ALLTOALL, part_, at, at, {}});
    }
  }

  /// Local reduce of all parts; each host reduces its part over the rows of all hosts into its own
  /// memory, and scatters it. With a switch, the switch reduces all parts.
  void reduce_scatter() {
    const uint32_t pieces = pieces_of(part_);
    const uint64_t slot = plan_.hosts * groups_ * plan_.hosts * largest(part_, pieces);
    reserve(pieces, slot);
    for (uint32_t j = 0; j < pieces; ++j) {
      const Cut piece = cut(part_, pieces, j);
      const uint64_t row = plan_.hosts * piece.bytes;
      const auto rows_of = [&](uint32_t host) {
        return pool(j % 2 * slot + host * groups_ * row, groups_, row);
      };
      const auto part_of = [&](uint32_t host, uint32_t part) {
        const Area rows = rows_of(host);
        return Area{rows.memory, rows.offset + part * piece.bytes, groups_, piece.bytes, row};
      };
      Piece &steps = plan_.pieces.emplace_back();
      if (pieces == 1)
        steps.before.push_back({PIDCOMM_REDUCE, bytes_, src_, 0, rows_of(plan_.host)});
      else
        for (uint32_t part = 0; part < plan_.hosts; ++part)
          steps.before.push_back({PIDCOMM_REDUCE, piece.bytes, src_ + part_ * part + piece.offset,
                                  0, part_of(plan_.host, part)});
      Round *round = &sync(steps);
      std::vector<Area> parts;
      for (uint32_t host = 0; host < plan_.hosts; ++host)
        parts.push_back(part_of(host, plan_.host));
      if (plan_.has_switch()) {
        reduce_on_switch(*round, rows_of(0), groups_ * row);
        round = &sync(steps);
        parts.resize(1);
      }
      Area into = window(0, groups_, part_);
      into.offset += piece.offset;
      into.bytes = piece.bytes;
      add(*round, into, parts, true);
    }
    plan_.last.push_back({PIDCOMM_SCATTER, block_, 0, dst_, window(0, groups_, part_)});
  }

  /// Local reduce; each host, or the switch, reduces a chunk over the rows of all hosts; sync;
  /// local broadcast.
  void allreduce() {
    each_reduced_piece([this](Piece &steps, const Cut &piece, const Area &rows) {
      steps.after.push_back({PIDCOMM_BROADCAST, piece.bytes, 0, dst_ + piece.offset, rows});
    });
  }

  /// As allreduce, but the root copies the result to the caller's rows.
  void reduce() {
    each_reduced_piece([this](Piece &steps, const Cut &piece, const Area &rows) {
      if (is_root())
        add(steps.rounds.back(), user_piece(piece),
            {{rows.memory, rows.offset, groups_, piece.bytes, piece.bytes}}, true);
    });
  }

  /// Each host gathers once, into its part of the rows; sync; one local broadcast of the rows. If
  /// there are several pieces, a piece has the rows of some hosts. The part of host 0 comes last,
  /// because in place it takes the place of the contributions.
  void allgather() {
    const uint32_t pieces = std::min(wanted_, plan_.hosts);
    const uint64_t slot = groups_ * part_ * ((plan_.hosts + pieces - 1) / pieces);
    reserve(pieces, slot);
    for (uint32_t j = 0; j < pieces; ++j) {
      const uint32_t turn = pieces - 1 - j, first = plan_.hosts * turn / pieces,
                     end = plan_.hosts * (turn + 1) / pieces;
      const uint64_t row = part_ * (end - first);
      const Area rows = pool(j % 2 * slot, groups_, row);
      Piece &steps = plan_.pieces.emplace_back();
      if (plan_.host >= first && plan_.host < end)
        steps.before.push_back(
            {PIDCOMM_GATHER,
             block_,
             src_,
             0,
             {rows.memory, rows.offset + part_ * (plan_.host - first), groups_, part_, row}});
      sync(steps);
      steps.after.push_back({PIDCOMM_BROADCAST, row, 0, dst_ + part_ * first, rows});
    }
  }

  /// The root copies the parts of the other hosts from the caller's rows; sync; local scatter. A
  /// piece has the parts of some hosts.
  void scatter() {
    each_part([this](Piece &steps, uint32_t host, const Area &rows) {
      if (is_root())
        add(steps.rounds.front(), rows, {user_part(host)}, true);
      else if (host == plan_.host)
        steps.after.push_back({PIDCOMM_SCATTER, bytes_, 0, dst_, rows});
    });
    if (is_root())
      plan_.meanwhile.push_back({PIDCOMM_SCATTER, bytes_, 0, dst_, user_part(plan_.host)});
  }

  /// Local gather; sync; the root copies the parts of the other hosts to the caller's rows.
  void gather() {
    each_part([this](Piece &steps, uint32_t host, const Area &rows) {
      if (is_root())
        add(steps.rounds.back(), user_part(host), {rows}, true);
      else if (host == plan_.host)
        steps.before.push_back({PIDCOMM_GATHER, bytes_, src_, 0, rows});
    });
    if (is_root())
      plan_.meanwhile.push_back({PIDCOMM_GATHER, bytes_, src_, 0, user_part(plan_.host)});
  }

  /// The root copies the caller's rows; sync; local broadcast.
  void broadcast() {
    const uint32_t pieces = pieces_of(bytes_);
    const uint64_t slot = groups_ * largest(bytes_, pieces);
    reserve(pieces, slot);
    for (uint32_t j = 0; j < pieces; ++j) {
      const Cut piece = cut(bytes_, pieces, j);
      const Area rows = pool(j % 2 * slot, groups_, piece.bytes);
      Piece &steps = plan_.pieces.emplace_back();
      if (is_root()) add(steps.rounds.emplace_back(), rows, {user_piece(piece)}, true);
      sync(steps);
      if (!is_root())
        steps.after.push_back({PIDCOMM_BROADCAST, piece.bytes, 0, dst_ + piece.offset, rows});
    }
    if (is_root())
      plan_.meanwhile.push_back(
          {PIDCOMM_BROADCAST, bytes_, 0, dst_, {Area::Memory::user, 0, groups_, bytes_, bytes_}});
  }

 private:
  static uint64_t largest(uint64_t bytes, uint32_t pieces) {
    uint64_t most = 0;
    for (uint32_t j = 0; j < pieces; ++j) most = std::max(most, cut(bytes, pieces, j).bytes);
    return most;
  }

  /// Pieces use two slots in turn.
  void reserve(uint32_t pieces, uint64_t slot) { plan_.pool_bytes = std::min(pieces, 2u) * slot; }
  static Area pool(uint64_t offset, uint64_t rows, uint64_t bytes) {
    return {Area::Memory::pool, offset, rows, bytes, bytes};
  }
  Area user_piece(const Cut &piece) const {
    return {Area::Memory::user, piece.offset, groups_, piece.bytes, bytes_};
  }

  static Round &sync(Piece &steps) {
    Round &round = steps.rounds.emplace_back();
    round.syncs = true;
    return round;
  }
  static void add(Round &round, const Area &into, const std::vector<Area> &from, bool replaces) {
    if (into.size_bytes() != 0) round.combines.push_back({into, from, replaces});
  }

  /// The switch reduces `size` contiguous bytes of all hosts; `first` are those of host 0.
  void reduce_on_switch(Round &round, const Area &first, uint64_t size) const {
    round.is_on_switch = true;
    std::vector<Area> rows;
    for (uint32_t host = 0; host < plan_.hosts; ++host)
      rows.push_back({first.memory, first.offset + host * size, 1, size, size});
    add(round, rows[0], {rows.begin() + 1, rows.end()}, false);
  }

  /// Adds pieces after which the rows of host 0 in the pool are the reduction over all hosts, and
  /// calls finish(steps, piece, rows).
  template <class Finish>
  void each_reduced_piece(const Finish &finish) {
    const uint32_t pieces = pieces_of(bytes_);
    const uint64_t slot = plan_.hosts * groups_ * largest(bytes_, pieces);
    reserve(pieces, slot);
    for (uint32_t j = 0; j < pieces; ++j) {
      const Cut piece = cut(bytes_, pieces, j);
      const uint64_t size = groups_ * piece.bytes;
      const auto rows_of = [&](uint32_t host) { return pool(j % 2 * slot + host * size, 1, size); };
      Piece &steps = plan_.pieces.emplace_back();
      steps.before.push_back(
          {PIDCOMM_REDUCE, piece.bytes, src_ + piece.offset, 0, rows_of(plan_.host)});
      Round &round = sync(steps);
      std::vector<Area> chunks;
      for (uint32_t host = 1; host < plan_.hosts; ++host)
        chunks.push_back(chunk(rows_of(host), plan_.host));
      plan_.has_switch() ? reduce_on_switch(round, rows_of(0), size)
                         : add(round, chunk(rows_of(0), plan_.host), chunks, false);
      sync(steps);
      finish(steps, piece, rows_of(0));
    }
  }

  /// Adds pieces for the parts of all hosts without the root, with a round before the sync. Calls
  /// visit(steps, host, rows).
  template <class Visit>
  void each_part(const Visit &visit) {
    const uint32_t pieces = std::min(wanted_, others());
    const uint64_t slot = groups_ * part_ * ((others() + pieces - 1) / pieces);
    reserve(pieces, slot);
    for (uint32_t j = 0; j < pieces; ++j) {
      const uint32_t first = others() * j / pieces, end = others() * (j + 1) / pieces;
      Piece &steps = plan_.pieces.emplace_back();
      steps.rounds.emplace_back();
      sync(steps);
      for (uint32_t n = first; n < end; ++n)
        visit(steps, (plan_.root + 1 + n) % plan_.hosts,
              pool(j % 2 * slot + (n - first) * groups_ * part_, groups_, part_));
    }
  }
};

}  // namespace

void make_pool_steps(HostsPlan &plan, const pidcomm_request &request, uint32_t wanted) {
  PoolMaker maker(plan, request, wanted);
  make_steps(maker, request.collective);
}

}  // namespace pidcomm
