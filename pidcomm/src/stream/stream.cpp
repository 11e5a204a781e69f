#include "stream/stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "exec/default_options.h"
#include "exec/device.h"
#include "exec/reducer.h"
#include "line_kernels/kernels.h"
#include "plan/window.h"
#include "rank_access/rank_access.h"
#include "stream/runner.h"

namespace pidcomm {

namespace {

constexpr ByteRange kAllMram{0, kMramBytes, true};

/// Whether a call with these options may load a program.
bool may_load(const pidcomm_options &options) {
  switch (options.technique) {
    case PIDCOMM_TECHNIQUE_AUTO:
      return options.scratch_offset != 0;
    case PIDCOMM_TECHNIQUE_DEFAULT:
    case PIDCOMM_TECHNIQUE_TILE:
    case PIDCOMM_TECHNIQUE_CONVENTIONAL:
    case PIDCOMM_TECHNIQUE_BASELINE:
      return false;
    default:
      return true;
  }
}

bool is_cut_by_words(int collective) {
  return collective == PIDCOMM_ALLREDUCE || collective == PIDCOMM_REDUCE ||
         collective == PIDCOMM_BROADCAST;
}

/// A request whose mask is its own.
struct OwnRequest {
  OwnRequest(const pidcomm_request &given) : mask(given.mask), request(given) {}
  pidcomm_request get() const {
    pidcomm_request own = request;
    own.mask = mask.c_str();
    return own;
  }
  std::string mask;
  pidcomm_request request;
};

ByteRange host_range(const void *begin, uint64_t bytes, bool writes) {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  return {address, address + bytes, writes};
}

void set_host(pidcomm_request &request, uint64_t offset, uint64_t rows, uint64_t row_bytes,
              uint64_t stride) {
  request.host = static_cast<std::byte *>(request.host) + offset;
  request.host_bytes = (rows - 1) * stride + row_bytes;
  request.host_stride = stride;
}

}  // namespace

/// One part of a collective of all PEs.
struct Stream::Collective {
  pidcomm_request request;
  pidcomm_options options;
  Plan plan;  // as `tile`

  bool has_host() const { return plan.in_row_bytes + plan.out_row_bytes != 0; }
  uint64_t stride() const {
    return std::max({plan.row_stride_bytes, plan.in_row_bytes, plan.out_row_bytes});
  }

  /// Whether `groups` hypercubes with a shorter last axis can carry it out.
  bool is_cut_by_ranks(uint32_t groups) const {
    if (plan.bytes == 0 || plan.cube.axes.back().length % groups != 0 || may_load(options) ||
        plan.messages != nullptr || plan.transposes)
      return false;
    return plan.mask.back() == '0' || plan.collective == PIDCOMM_SCATTER ||
           plan.collective == PIDCOMM_GATHER || plan.collective == PIDCOMM_BROADCAST;
  }

  /// Whether it is an allreduce of `groups` reduces, whose rows the host combines, and as many
  /// broadcasts. Only of integers: their sums do not depend on the order.
  bool is_combined(uint32_t groups) const {
    return plan.collective == PIDCOMM_ALLREDUCE && plan.mask.back() == '1' && plan.bytes != 0 &&
           plan.type.kind != ElementType::Kind::floating && request.operation == nullptr &&
           plan.cube.axes.back().length % groups == 0 && !may_load(options);
  }

  /// The request of one of these hypercubes.
  pidcomm_request of_group(uint32_t group, uint32_t groups) const {
    pidcomm_request own = request;
    if (!has_host()) return own;
    const uint64_t rows = plan.grouping.groups, row = plan.in_row_bytes + plan.out_row_bytes;
    if (plan.mask.back() == '0')
      set_host(own, group * (rows / groups) * stride(), rows / groups, row, stride());
    else if (plan.collective != PIDCOMM_BROADCAST)
      set_host(own, group * (row / groups), rows, row / groups, stride());
    return own;
  }
};

Stream::Stream(struct dpu_set_t set, uint32_t rank_groups)
    : set_(set), rank_groups_(rank_groups), placement_(Placement::largest(set)) {
  uint32_t pes = 0;
  check_device(dpu_get_nr_dpus(set, &pes), "reading the DPU set");
  if (set.kind != DPU_SET_RANKS) fail(PIDCOMM_ERR_SET, "a stream needs a set of ranks");
  if (rank_groups == 0 || set_.list.nr_ranks % rank_groups != 0)
    fail(PIDCOMM_ERR_ARGUMENT, "rank_groups (", rank_groups, ") must divide the ",
         set_.list.nr_ranks, " ranks of the set");
  if (rank_groups != 1 && (pes != set_.list.nr_ranks * kLanes * kBanks))
    fail(PIDCOMM_ERR_SHAPE, "a stream of ", rank_groups, " rank groups needs all PEs of ",
         set_.list.nr_ranks, " ranks; the set has ", pes, " PEs");
}

struct dpu_set_t Stream::group_set(uint32_t group) const {
  return ranks_of(set_, group * group_ranks(), group_ranks());
}

StreamPiece Stream::piece_of(std::size_t part, uint32_t group) const {
  StreamPiece piece;
  piece.step = steps_;
  piece.part = part;
  piece.first_rank = group * group_ranks();
  piece.ranks = group_ranks();
  return piece;
}

void Stream::record(std::vector<StreamPiece> pieces) {
  graph_.add(std::move(pieces));
  ++steps_;
}

void Stream::launch(const std::vector<pidcomm_access> &accesses, uint32_t parts,
                    const char *part_variable) {
  if (parts == 0) fail(PIDCOMM_ERR_ARGUMENT, "parts is 0; a launch has at least 1 part");
  if (parts != 1 && part_variable == nullptr)
    fail(PIDCOMM_ERR_ARGUMENT, "part_variable is null, but the launch has ", parts, " parts");
  for (std::size_t pe = 0; pe < placement_.dpus.size(); ++pe)
    if (dpu_get_program(placement_.dpus[pe]) == nullptr)
      fail(PIDCOMM_ERR_DEVICE, "PE ", pe, " has no program to launch");
  if (part_variable != nullptr) {
    const struct dpu_symbol_t symbol = symbol_of(placement_, part_variable);
    if (symbol.size != 8 || symbol.address >= kMramAddress)
      fail(PIDCOMM_ERR_ARGUMENT, "part_variable ", part_variable,
           " must be a uint32_t[2] in WRAM; it has ", symbol.size, " bytes");
  }
  const uint64_t heap_base = heap_base_of(placement_);
  std::vector<StreamPiece> pieces;
  for (uint32_t part = 0; part < parts; ++part) {
    std::vector<ByteRange> mram;
    for (const pidcomm_access &access : accesses) {
      const uint64_t pieces_of_access = access.is_cut != 0 ? parts : 1;
      if (access.bytes % (kWordBytes * pieces_of_access) != 0)
        fail(PIDCOMM_ERR_SIZE, "the bytes of an access (", access.bytes, ") must be a multiple of ",
             kWordBytes * pieces_of_access);
      const uint64_t begin =
          checked_window("launch", "access", access.window, access.bytes, heap_base);
      const uint64_t bytes = access.bytes / pieces_of_access;
      const uint64_t at = begin + (access.is_cut != 0 ? part * bytes : 0);
      mram.push_back({at, at + bytes, access.writes != 0});
    }
    if (accesses.empty()) mram.push_back(kAllMram);
    for (uint32_t group = 0; group < rank_groups_; ++group) {
      StreamPiece piece = piece_of(part, group);
      piece.is_launch = piece.uses_wram = true;
      piece.mram = mram;
      if (part_variable != nullptr)
        piece.work = [set = group_set(group), name = std::string(part_variable), part, parts] {
          const uint32_t value[2] = {part, parts};
          check_device(
              dpu_broadcast_to(set, name.c_str(), 0, value, sizeof value, DPU_XFER_DEFAULT),
              "writing variable " + name);
        };
      pieces.push_back(std::move(piece));
    }
  }
  record(std::move(pieces));
}

void Stream::write(const char *name, const void *data, std::size_t bytes) {
  const struct dpu_symbol_t symbol = symbol_of(placement_, name);
  if (symbol.address >= kMramAddress)
    fail(PIDCOMM_ERR_ARGUMENT, "variable ", name, " is not in WRAM");
  if (bytes % 4 != 0 || bytes > symbol.size)
    fail(PIDCOMM_ERR_SIZE, "bytes (", bytes, ") must be a multiple of 4 and at most the ",
         symbol.size, " bytes of variable ", name);
  const auto *const begin = static_cast<const std::byte *>(data);
  const auto own = std::make_shared<const std::vector<std::byte>>(begin, begin + bytes);
  std::vector<StreamPiece> pieces;
  for (uint32_t group = 0; group < rank_groups_; ++group) {
    StreamPiece piece = piece_of(0, group);
    piece.uses_wram = true;
    piece.work = [set = group_set(group), variable = std::string(name), own] {
      if (own->empty()) return;
      check_device(
          dpu_broadcast_to(set, variable.c_str(), 0, own->data(), own->size(), DPU_XFER_DEFAULT),
          "writing variable " + variable);
    };
    pieces.push_back(std::move(piece));
  }
  record(std::move(pieces));
}

Executor &Stream::group_executor(const Executor &whole, uint32_t group) {
  const Hypercube &cube = whole.cube();
  std::vector<uint32_t> lengths;
  for (const Axis &axis : cube.axes) lengths.push_back(axis.length);
  lengths.back() /= rank_groups_;
  std::vector<uint32_t> key{group, static_cast<uint32_t>(cube.order)};
  key.insert(key.end(), lengths.begin(), lengths.end());
  std::unique_ptr<Executor> &executor = executors_[key];
  if (executor == nullptr)
    executor = std::make_unique<Executor>(group_set(group), 0, Hypercube::of(lengths, cube.order),
                                          whole.planner());
  return *executor;
}

StreamPiece Stream::pass_of(Executor &executor, const pidcomm_request &request,
                            const Collective &collective, StreamPiece piece) const {
  executor.validate(request, &collective.options);
  piece.work = [&executor, own = OwnRequest(request), options = collective.options] {
    pidcomm_trace trace{};
    executor.run(own.get(), &options, trace);
  };
  return piece;
}

std::vector<StreamPiece> Stream::pieces_of(Executor &executor, const Collective &collective,
                                           std::size_t part) {
  const Plan &plan = collective.plan;
  const bool is_cut = rank_groups_ != 1 && collective.is_cut_by_ranks(rank_groups_);
  std::vector<StreamPiece> pieces;
  for (uint32_t group = 0; group < (is_cut ? rank_groups_ : 1); ++group) {
    const pidcomm_request request =
        is_cut ? collective.of_group(group, rank_groups_) : collective.request;
    StreamPiece piece = piece_of(part, group);
    if (!is_cut) piece.ranks = set_.list.nr_ranks;
    if (may_load(collective.options) || plan.messages != nullptr) {
      piece.mram.push_back(kAllMram);
      piece.uses_wram = true;
    } else {
      piece.mram = {{plan.src, plan.src + plan.in_pe_bytes, false},
                    {plan.dst, plan.dst + plan.out_pe_bytes, true}};
    }
    if (collective.has_host())
      piece.host = {host_range(request.host, request.host_bytes, plan.out_row_bytes != 0)};
    pieces.push_back(pass_of(is_cut ? group_executor(executor, group) : executor, request,
                             collective, std::move(piece)));
  }
  return pieces;
}

std::vector<StreamPiece> Stream::combined_pieces_of(Executor &executor,
                                                    const Collective &collective,
                                                    std::size_t part) {
  const Plan &plan = collective.plan;
  const std::size_t bytes = plan.grouping.groups * plan.bytes;  // the rows of a rank group
  const auto rows = std::make_shared<std::vector<std::byte>>(bytes * rank_groups_);
  std::vector<StreamPiece> pieces;
  const auto add_passes = [&](int kind, std::size_t rows_of_group, ByteRange mram) {
    for (uint32_t group = 0; group < rank_groups_; ++group) {
      pidcomm_request request = collective.request;
      request.collective = kind;
      request.host = rows->data() + group * rows_of_group;
      request.host_bytes = bytes;
      request.host_stride = 0;
      StreamPiece piece = piece_of(part, group);
      piece.mram = {mram};
      piece.host = {host_range(request.host, bytes, kind == PIDCOMM_REDUCE)};
      pieces.push_back(
          pass_of(group_executor(executor, group), request, collective, std::move(piece)));
    }
  };
  add_passes(PIDCOMM_REDUCE, bytes, {plan.src, plan.src + plan.bytes, false});
  StreamPiece combine = piece_of(part, 0);
  combine.ranks = 0;
  combine.host = {host_range(rows->data(), rows->size(), true)};
  const Reducer *const reducer = reducer_of(kernels_of(plan.options.isa), plan);
  combine.work = [rows, reducer, bytes] {
    for (std::size_t at = bytes; at < rows->size(); at += bytes)
      reducer->combine(rows->data(), rows->data() + at, bytes);
  };
  pieces.push_back(std::move(combine));
  add_passes(PIDCOMM_BROADCAST, 0, {plan.dst, plan.dst + plan.bytes, true});
  return pieces;
}

void Stream::run(Executor &executor, const pidcomm_request &request, const pidcomm_options &options,
                 uint32_t parts) {
  if (executor.placement().ranks != placement_.ranks ||
      executor.cube().pes != placement_.dpus.size())
    fail(PIDCOMM_ERR_SHAPE, "the hypercube ", executor.cube().to_string(), " must have all ",
         placement_.dpus.size(), " PEs of the set of the stream");
  executor.validate(request, &options);
  if (parts == 0 || (parts != 1 && !is_cut_by_words(request.collective)))
    fail(PIDCOMM_ERR_ARGUMENT, "parts (", parts,
         ") must be at least 1, and 1 unless the collective is allreduce, reduce or broadcast");
  if (request.bytes % (kWordBytes * parts) != 0)
    fail(PIDCOMM_ERR_SIZE, "bytes (", request.bytes, ") must be a multiple of 8 * parts (",
         kWordBytes * parts, ")");
  Options as_tile = resolve(&options);
  as_tile.technique = PIDCOMM_TECHNIQUE_TILE;
  const uint64_t heap_base = executor.heap_base_now();
  const Collective whole{request, options, make_plan(executor.cube(), request, as_tile, heap_base)};
  std::vector<StreamPiece> pieces;
  for (uint32_t part = 0; part < parts; ++part) {
    pidcomm_request own = request;
    own.bytes = request.bytes / parts;
    const uint64_t offset = part * own.bytes;
    if (parts != 1 && whole.plan.in_pe_bytes != 0) own.src += offset;
    if (parts != 1 && whole.plan.out_pe_bytes != 0) own.dst += offset;
    if (parts != 1 && whole.has_host())
      set_host(own, offset, whole.plan.grouping.groups, own.bytes, whole.stride());
    const Collective of_part{own, options, make_plan(executor.cube(), own, as_tile, heap_base)};
    const bool is_combined = rank_groups_ != 1 && of_part.is_combined(rank_groups_);
    for (StreamPiece &piece : is_combined ? combined_pieces_of(executor, of_part, part)
                                          : pieces_of(executor, of_part, part))
      pieces.push_back(std::move(piece));
  }
  record(std::move(pieces));
}

pidcomm_stream_trace Stream::execute() {
  timeline_.clear();
  wait_for_set(set_, placement_);
  const auto by_begin = [](const pidcomm_stream_piece &a, const pidcomm_stream_piece &b) {
    return a.begin_s < b.begin_s;
  };
  try {
    run_pieces(graph_, set_, placement_, timeline_);
  } catch (...) {
    std::stable_sort(timeline_.begin(), timeline_.end(), by_begin);
    throw;
  }
  std::stable_sort(timeline_.begin(), timeline_.end(), by_begin);
  pidcomm_stream_trace trace{};
  trace.pieces = timeline_.size();
  trace.is_mixed = launches_are_modelled() ? 1 : 0;
  double pes_until_s = 0;
  for (const pidcomm_stream_piece &piece : timeline_) {
    trace.seconds_total = std::max(trace.seconds_total, piece.end_s);
    if (piece.is_launch == 0) {
      trace.seconds_host += piece.end_s - piece.begin_s;
    } else {
      trace.seconds_pes += std::max(0.0, piece.end_s - std::max(piece.begin_s, pes_until_s));
      pes_until_s = std::max(pes_until_s, piece.end_s);
    }
  }
  return trace;
}

}  // namespace pidcomm
