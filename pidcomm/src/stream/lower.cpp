#include "stream/lower.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "exec/default_options.h"
#include "exec/reducer.h"
#include "stream/collective.h"

namespace pidcomm {

namespace {

constexpr ByteRange kAllMram{0, kMramBytes, true};
/// Of all rows of a stream that the host combines; other allreduces wait for all ranks.
constexpr uint64_t kMostRowBytes = uint64_t{256} << 20;
/// Of an operator of the program, whose context is unknown.
constexpr ByteRange kReadsAllHost{0, std::numeric_limits<uint64_t>::max(), false};

ByteRange host_range(const void *begin, uint64_t bytes, bool writes) {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  return {address, address + bytes, writes};
}

class Lowering {
 public:
  Lowering(StreamCuts cuts, uint32_t ranks) : cuts_(cuts), ranks_(ranks) {}

  StreamGraph graph{};  // of the steps that have been added

  void add(std::size_t number, const StreamStep &step) {
    step_ = number;
    parts_ = std::gcd(parts_of(step), cuts_.parts);
    for (part_ = 0; part_ < parts_; ++part_)
      std::visit([this](const auto &own) { add(own); }, step);
  }

 private:
  /// A piece of the current step and part on a group of ranks.
  StreamPiece piece_of(uint32_t group, uint32_t groups) const {
    StreamPiece piece;
    piece.step = step_;
    piece.part = part_;
    piece.parts = parts_;
    piece.ranks = ranks_ / groups;
    piece.first_rank = group * piece.ranks;
    return piece;
  }

  void add(const LaunchStep &step) {
    std::vector<ByteRange> mram;
    for (const auto &[range, is_cut] : step.accesses) {
      const uint64_t bytes = (range.end - range.begin) / (is_cut ? parts_ : 1);
      const uint64_t begin = range.begin + (is_cut ? part_ * bytes : 0);
      mram.push_back({begin, begin + bytes, range.writes});
    }
    if (step.accesses.empty()) mram.push_back(kAllMram);
    for (uint32_t group = 0; group < cuts_.rank_groups; ++group) {
      StreamPiece piece = piece_of(group, cuts_.rank_groups);
      piece.uses_wram = true;
      piece.mram = mram;
      piece.work = LaunchWork{&step};
      graph.add(std::move(piece));
    }
  }

  void add(const WriteStep &step) {
    for (uint32_t group = 0; group < cuts_.rank_groups; ++group) {
      StreamPiece piece = piece_of(group, cuts_.rank_groups);
      piece.uses_wram = true;
      piece.work = WriteWork{&step};
      graph.add(std::move(piece));
    }
  }

  void add(const CallStep &step) {
    StreamPiece piece = piece_of(0, 1);
    piece.ranks = 0;
    piece.host = step.host;
    piece.work = CallWork{&step};
    graph.add(std::move(piece));
  }

  void add(const CollectiveStep &step) {
    const CollectivePart part(step, part_, parts_);
    const uint32_t groups = cuts_.rank_groups;
    if (groups != 1 && part.is_combined(groups) && has_memory_for_rows(part.plan))
      add_combined(step, part);
    else
      add_passes(step, part, groups != 1 && part.is_cut_by_ranks(groups) ? groups : 1);
  }

  /// Whether the rows that the host combines stay below the limit of a stream; then counts them.
  bool has_memory_for_rows(const Plan &plan) {
    const uint64_t bytes = plan.grouping.groups * plan.bytes * cuts_.rank_groups;
    if (bytes > kMostRowBytes - row_bytes_) return false;
    row_bytes_ += bytes;
    return true;
  }

  void add_passes(const CollectiveStep &step, const CollectivePart &part, uint32_t groups) {
    const Plan &plan = part.plan;
    for (uint32_t group = 0; group < groups; ++group) {
      StreamPiece piece = piece_of(group, groups);
      piece.uses_wram = part.may_load() || plan.messages != nullptr;
      if (piece.uses_wram)
        piece.mram = {kAllMram};
      else
        piece.mram = {{plan.src, plan.src + plan.in_pe_bytes, false},
                      {plan.dst, plan.dst + plan.out_pe_bytes, true}};
      const pidcomm_request request = part.of_group(group, groups);
      if (part.has_host())
        piece.host = {host_range(request.host, request.host_bytes, plan.out_row_bytes != 0)};
      if (request.operation != nullptr) piece.host.push_back(kReadsAllHost);
      piece.work = CollectiveWork{&step, group, groups, request};
      graph.add(std::move(piece));
    }
  }

  /// An allreduce as a reduce of each rank group to host rows, whose rows the host combines, and a
  /// broadcast to each rank group.
  void add_combined(const CollectiveStep &step, const CollectivePart &part) {
    const Plan &plan = part.plan;
    const uint32_t groups = cuts_.rank_groups;
    const std::size_t bytes = plan.grouping.groups * plan.bytes;  // the rows of a rank group
    const std::shared_ptr<std::byte[]> rows =
        std::make_unique_for_overwrite<std::byte[]>(bytes * groups);
    const auto add_all = [&](int kind, std::size_t distance, ByteRange mram) {
      for (uint32_t group = 0; group < groups; ++group) {
        pidcomm_request request = part.request;
        request.collective = kind;
        request.host = rows.get() + group * distance;
        request.host_bytes = bytes;
        request.host_stride = 0;
        StreamPiece piece = piece_of(group, groups);
        piece.mram = {mram};
        piece.host = {host_range(request.host, bytes, kind == PIDCOMM_REDUCE)};
        piece.work = CollectiveWork{&step, group, groups, request};
        graph.add(std::move(piece));
      }
    };
    add_all(PIDCOMM_REDUCE, bytes, {plan.src, plan.src + plan.bytes, false});
    StreamPiece combine = piece_of(0, groups);
    combine.ranks = 0;
    combine.host = {host_range(rows.get(), bytes * groups, true)};
    combine.work = CombineWork{rows, groups, bytes, reducer_of(kernels_of(plan.options.isa), plan),
                               plan.options.threads};
    graph.add(std::move(combine));
    add_all(PIDCOMM_BROADCAST, 0, {plan.dst, plan.dst + plan.bytes, true});
  }

  const StreamCuts cuts_;
  const uint32_t ranks_;
  std::size_t step_ = 0;
  uint32_t part_ = 0, parts_ = 1;
  uint64_t row_bytes_ = 0;
};

}  // namespace

StreamGraph lower(const StreamSteps &steps, StreamCuts cuts, uint32_t ranks) {
  Lowering lowering(cuts, ranks);
  for (std::size_t step = 0; step < steps.size(); ++step) lowering.add(step, steps[step]);
  lowering.graph.finish();
  return std::move(lowering.graph);
}

}  // namespace pidcomm
