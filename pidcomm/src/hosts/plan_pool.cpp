// Plans over hosts through a pool: a local pass writes rows once into the pool, all hosts sync, and
// local passes of all hosts read them where they are. Rows travel twice over a port of the pool,
// whatever the number of hosts, and no byte is copied in host memory.
//
// The number of pieces and of syncs depends only on what all hosts have in common. Pieces alternate
// between two slots of the pool: a host that writes piece j + 2 has passed the sync of piece j + 1,
// and so all hosts have read piece j.
#include "hosts/piece_maker.h"

namespace pidcomm {

namespace {

/// Adds the pieces of one collective through a pool.
class PoolPieces : public PieceMaker {
 public:
  using PieceMaker::PieceMaker;

  /// For the host blocks of the other hosts: gather, sync, scatter. In one piece, the gather of
  /// `tile` and `auto` transposes blocks. Otherwise the plan ends with an alltoall in place of each
  /// host block, and piece j of a host block takes the place of piece j.
  void alltoall() {
    const uint32_t pieces = pieces_of(host_block_);
    const bool transposes = may_transpose() && wanted_ == 1;
    const uint64_t rows = groups_ * members(),
                   slot = plan_.hosts * others() * rows * largest(host_block_, pieces);
    reserve(pieces, slot);
    plan_.transposes = transposes;
    for (uint32_t j = 0; j < pieces; ++j) {
      const Range range = cut(host_block_, pieces, j);
      Piece &piece = plan_.pieces.emplace_back();
      const auto rows_of = [&](uint32_t sender, uint32_t n) {
        const uint64_t size = rows * range.bytes;
        return pool(j % 2 * slot + (uint64_t{sender} * others() + n) * size, 1, size);
      };
      for (uint32_t n = 0; n < others(); ++n) {
        piece.before.push_back({PIDCOMM_GATHER, range.bytes,
                                src_ + host_block_ * to(n) + range.offset, 0,
                                rows_of(plan_.host, n), transposes});
        piece.after.push_back({PIDCOMM_SCATTER, range.bytes, 0,
                               dst_ + host_block_ * from(n) + range.offset, rows_of(from(n), n)});
      }
      sync(piece);
    }
    add_local_alltoalls(transposes);
  }

  /// Local reduce of all host blocks; each host reduces its host block over the rows of all hosts
  /// into its own memory, and scatters it. With a switch, the switch reduces all host blocks.
  void reduce_scatter() {
    const uint32_t pieces = pieces_of(host_block_);
    const uint64_t slot = plan_.hosts * groups_ * plan_.hosts * largest(host_block_, pieces);
    reserve(pieces, slot);
    for (uint32_t j = 0; j < pieces; ++j) {
      const Range range = cut(host_block_, pieces, j);
      const uint64_t row = plan_.hosts * range.bytes;
      const auto rows_of = [&](uint32_t host) {
        return pool(j % 2 * slot + host * groups_ * row, groups_, row);
      };
      const auto block_of = [&](uint32_t host, uint32_t owner) {
        const Area rows = rows_of(host);
        return Area{rows.memory, rows.offset + owner * range.bytes, groups_, range.bytes, row};
      };
      Piece &piece = plan_.pieces.emplace_back();
      if (pieces == 1)
        piece.before.push_back({PIDCOMM_REDUCE, bytes_, src_, 0, rows_of(plan_.host)});
      else
        for (uint32_t owner = 0; owner < plan_.hosts; ++owner)
          piece.before.push_back({PIDCOMM_REDUCE, range.bytes,
                                  src_ + host_block_ * owner + range.offset, 0,
                                  block_of(plan_.host, owner)});
      Round *round = &sync(piece);
      std::vector<Area> own_blocks;
      for (uint32_t host = 0; host < plan_.hosts; ++host)
        own_blocks.push_back(block_of(host, plan_.host));
      if (plan_.has_switch()) {
        reduce_on_switch(*round, rows_of(0), groups_ * row);
        round = &sync(piece);
        own_blocks.resize(1);
      }
      Area into = window(0, groups_, host_block_);
      into.offset += range.offset;
      into.bytes = range.bytes;
      add(*round, into, own_blocks, true);
    }
    plan_.last.push_back({PIDCOMM_SCATTER, block_, 0, dst_, window(0, groups_, host_block_)});
  }

  /// Local reduce; each host, or the switch, reduces a chunk over the rows of all hosts; sync;
  /// local broadcast.
  void allreduce() {
    each_reduced_piece([this](Piece &piece, const Range &range, const Area &rows) {
      piece.after.push_back({PIDCOMM_BROADCAST, range.bytes, 0, dst_ + range.offset, rows});
    });
  }

  /// As allreduce, but the root copies the result to the caller's rows.
  void reduce() {
    each_reduced_piece([this](Piece &piece, const Range &range, const Area &rows) {
      if (is_root())
        add(piece.rounds.back(), user_range(range),
            {{rows.memory, rows.offset, groups_, range.bytes, range.bytes}}, true);
    });
  }

  /// Each host gathers once, into its host block of the rows; sync; one local broadcast of the
  /// rows. If there are several pieces, each host gathers once into its window, and copies a range
  /// of its host block per piece.
  void allgather() {
    const uint32_t pieces = pieces_of(host_block_);
    const uint64_t slot = plan_.hosts * groups_ * largest(host_block_, pieces);
    reserve(pieces, slot);
    if (pieces == 1) {
      const Area rows = pool(0, groups_, bytes_);
      Piece &piece = plan_.pieces.emplace_back();
      piece.before.push_back(
          {PIDCOMM_GATHER,
           block_,
           src_,
           0,
           {rows.memory, host_block_ * plan_.host, groups_, host_block_, bytes_}});
      sync(piece);
      piece.after.push_back({PIDCOMM_BROADCAST, bytes_, 0, dst_, rows});
      return;
    }
    const Area own = window(0, groups_, host_block_);
    for (uint32_t j = 0; j < pieces; ++j) {
      const Range range = cut(host_block_, pieces, j);
      const auto rows_of = [&](uint32_t host) {
        return pool(j % 2 * slot + host * groups_ * range.bytes, groups_, range.bytes);
      };
      Piece &piece = plan_.pieces.emplace_back();
      if (j == 0) piece.before.push_back({PIDCOMM_GATHER, block_, src_, 0, own});
      Area own_range = own;
      own_range.offset += range.offset;
      own_range.bytes = range.bytes;
      add(piece.rounds.emplace_back(), rows_of(plan_.host), {own_range}, true);
      sync(piece);
      for (uint32_t n = 0; n < others(); ++n)
        piece.after.push_back({PIDCOMM_BROADCAST, range.bytes, 0,
                               dst_ + host_block_ * from(n) + range.offset, rows_of(from(n))});
    }
    plan_.meanwhile.push_back(
        {PIDCOMM_BROADCAST, host_block_, 0, dst_ + host_block_ * plan_.host, own});
  }

  /// The root copies the blocks of the other hosts from the caller's rows; sync; local scatter.
  void scatter() {
    each_block_range([this](Piece &piece, const Range &range, uint32_t host, const Area &rows) {
      if (is_root())
        add(piece.rounds.front(), rows, {user_blocks(host, range)}, true);
      else if (host == plan_.host)
        piece.after.push_back({PIDCOMM_SCATTER, range.bytes, 0, dst_ + range.offset, rows});
    });
    if (is_root())
      plan_.meanwhile.push_back({PIDCOMM_SCATTER, bytes_, 0, dst_, user_host_block(plan_.host)});
  }

  /// Local gather; sync; the root copies the blocks of the other hosts to the caller's rows.
  void gather() {
    each_block_range([this](Piece &piece, const Range &range, uint32_t host, const Area &rows) {
      if (is_root())
        add(piece.rounds.back(), user_blocks(host, range), {rows}, true);
      else if (host == plan_.host)
        piece.before.push_back({PIDCOMM_GATHER, range.bytes, src_ + range.offset, 0, rows});
    });
    if (is_root())
      plan_.meanwhile.push_back({PIDCOMM_GATHER, bytes_, src_, 0, user_host_block(plan_.host)});
  }

  /// The root copies the caller's rows; sync; local broadcast.
  void broadcast() {
    const uint32_t pieces = pieces_of(bytes_);
    const uint64_t slot = groups_ * largest(bytes_, pieces);
    reserve(pieces, slot);
    for (uint32_t j = 0; j < pieces; ++j) {
      const Range range = cut(bytes_, pieces, j);
      const Area rows = pool(j % 2 * slot, groups_, range.bytes);
      Piece &piece = plan_.pieces.emplace_back();
      if (is_root()) add(piece.rounds.emplace_back(), rows, {user_range(range)}, true);
      sync(piece);
      if (!is_root())
        piece.after.push_back({PIDCOMM_BROADCAST, range.bytes, 0, dst_ + range.offset, rows});
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

  /// Pieces alternate between two slots.
  void reserve(uint32_t pieces, uint64_t slot) { plan_.pool_bytes = std::min(pieces, 2u) * slot; }
  static Area pool(uint64_t offset, uint64_t rows, uint64_t bytes) {
    return {Area::Memory::pool, offset, rows, bytes, bytes};
  }
  Area user_range(const Range &range) const {
    return {Area::Memory::user, range.offset, groups_, range.bytes, bytes_};
  }

  static Round &sync(Piece &piece) {
    Round &round = piece.rounds.emplace_back();
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
  /// calls finish(piece, range, rows).
  template <class Finish>
  void each_reduced_piece(const Finish &finish) {
    const uint32_t pieces = pieces_of(bytes_);
    const uint64_t slot = plan_.hosts * groups_ * largest(bytes_, pieces);
    reserve(pieces, slot);
    for (uint32_t j = 0; j < pieces; ++j) {
      const Range range = cut(bytes_, pieces, j);
      const uint64_t size = groups_ * range.bytes;
      const auto rows_of = [&](uint32_t host) { return pool(j % 2 * slot + host * size, 1, size); };
      Piece &piece = plan_.pieces.emplace_back();
      piece.before.push_back(
          {PIDCOMM_REDUCE, range.bytes, src_ + range.offset, 0, rows_of(plan_.host)});
      Round &round = sync(piece);
      std::vector<Area> chunks;
      for (uint32_t host = 1; host < plan_.hosts; ++host)
        chunks.push_back(chunk(rows_of(host), plan_.host));
      plan_.has_switch() ? reduce_on_switch(round, rows_of(0), size)
                         : add(round, chunk(rows_of(0), plan_.host), chunks, false);
      sync(piece);
      finish(piece, range, rows_of(0));
    }
  }

  /// A range of each block of a host, in the caller's rows and contiguous in the pool: a row per
  /// block, or the host's part of each row of the caller if the range is a whole block.
  Area user_blocks(uint32_t host, const Range &range) const {
    if (range.bytes == block_) return user_host_block(host);
    const Area whole = user_host_block(host);
    return {whole.memory,
            whole.offset + range.offset,
            groups_ * members(),
            range.bytes,
            block_,
            members(),
            whole.stride};
  }
  Area pool_blocks(uint64_t offset, const Range &range) const {
    return range.bytes == block_ ? pool(offset, groups_, host_block_)
                                 : pool(offset, groups_ * members(), range.bytes);
  }

  /// Adds pieces for a range of the blocks of all hosts without the root, with a round before the
  /// sync. Calls visit(piece, range, host, rows).
  template <class Visit>
  void each_block_range(const Visit &visit) {
    const uint32_t pieces = pieces_of(block_);
    const uint64_t blocks = groups_ * members(), slot = others() * blocks * largest(block_, pieces);
    reserve(pieces, slot);
    for (uint32_t j = 0; j < pieces; ++j) {
      const Range range = cut(block_, pieces, j);
      Piece &piece = plan_.pieces.emplace_back();
      piece.rounds.emplace_back();
      sync(piece);
      for (uint32_t n = 0; n < others(); ++n)
        visit(piece, range, (plan_.root + 1 + n) % plan_.hosts,
              pool_blocks(j % 2 * slot + n * blocks * range.bytes, range));
    }
  }
};

}  // namespace

void make_pool_pieces(HostsPlan &plan, const pidcomm_request &request, uint32_t wanted) {
  PoolPieces maker(plan, request, wanted);
  make_pieces(maker, request.collective);
}

}  // namespace pidcomm
