// The recording calls of a stream.
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "exec/device.h"
#include "exec/pe_reorder.h"
#include "plan/window.h"
#include "stream/collective.h"
#include "stream/stream.h"

namespace pidcomm {

namespace {

constexpr uint64_t kMostPieces = 65536;  // time and memory of the graph grow with the square

}  // namespace

Stream::Stream(struct dpu_set_t set, uint32_t rank_groups)
    : set_(set),
      rank_groups_(rank_groups),
      placement_(Placement::largest(set)),
      calls_(placement_.ranks),
      executors_(set) {
  uint32_t pes = 0;
  check_device(dpu_get_nr_dpus(set, &pes), "reading the DPU set");
  if (set.kind != DPU_SET_RANKS) fail(PIDCOMM_ERR_SET, "a stream needs a set of ranks");
  if (rank_groups != 0 && set_.list.nr_ranks % rank_groups != 0)
    fail(PIDCOMM_ERR_ARGUMENT, "rank_groups (", rank_groups, ") must divide the ",
         set_.list.nr_ranks, " ranks of the set");
  has_all_pes_ = pes == set_.list.nr_ranks * kLanes * kBanks;
  if (rank_groups > 1 && !has_all_pes_)
    fail(PIDCOMM_ERR_SHAPE, "a stream of ", rank_groups, " rank groups needs all PEs of ",
         set_.list.nr_ranks, " ranks; the set has ", pes, " PEs");
}

void Stream::record(StreamStep step) {
  // The stream chooses planned cuts with fewer pieces; its first runs have one for each step.
  const uint64_t pieces = pieces_ + (rank_groups_ == 0 ? 1 : most_pieces(step, rank_groups_));
  if (pieces > kMostPieces)
    fail(PIDCOMM_ERR_ARGUMENT, "with ", rank_groups_, " rank groups, steps 0 to ", steps_.size(),
         " may have ", pieces, " pieces; a stream has at most ", kMostPieces);
  steps_.push_back(std::move(step));
  pieces_ = pieces;
  cutter_.reset();
}

/// Throws unless launches and writes can use the programs of the PEs: those of earlier ones.
void Stream::require_program() const {
  if (may_load_)
    fail(PIDCOMM_ERR_ARGUMENT,
         "a collective of the stream may replace the program of launches and writes");
  const struct dpu_program_t *before = nullptr;
  for (std::size_t pe = 0; pe < placement_.dpus.size(); ++pe) {
    struct dpu_program_t *const own = dpu_get_program(placement_.dpus[pe]);
    if (pe == 0 || own != before) {
      before = own;
      if (has_reorder_program(placement_.dpus[pe]))
        fail(PIDCOMM_ERR_DEVICE,
             "a collective has replaced the program of these PEs by its program that reorders "
             "blocks; load yours again, and record the steps again");
    }
    if (!programs_.empty() && own != programs_[pe])
      fail(PIDCOMM_ERR_DEVICE, "PE ", pe,
           " has loaded another program since a launch or a write was recorded; record the steps "
           "again");
  }
}

/// Records a launch or a write.
void Stream::record_on_program(StreamStep step) {
  std::vector<struct dpu_program_t *> programs;
  for (struct dpu_t *const dpu : placement_.dpus) programs.push_back(dpu_get_program(dpu));
  record(std::move(step));
  programs_ = std::move(programs);
}

/// Offsets of requests begin at the heap base of the program that is now loaded.
void Stream::update_heap_base() {
  std::optional<uint64_t> base;
  for (StreamStep &step : steps_) {
    auto *const own = std::get_if<CollectiveStep>(&step);
    if (own == nullptr) continue;
    if (!base) base = heap_base_.of(placement_);
    if (std::exchange(own->heap_base, *base) != *base) cutter_.reset();
  }
}

void Stream::launch(const std::vector<pidcomm_access> &accesses, uint32_t parts,
                    const char *part_variable) {
  if (parts == 0) fail(PIDCOMM_ERR_ARGUMENT, "parts is 0; a launch has at least 1 part");
  if (parts != 1 && part_variable == nullptr)
    fail(PIDCOMM_ERR_ARGUMENT, "part_variable is null, but the launch has ", parts, " parts");
  for (std::size_t pe = 0; pe < placement_.dpus.size(); ++pe)
    if (dpu_get_program(placement_.dpus[pe]) == nullptr)
      fail(PIDCOMM_ERR_DEVICE, "PE ", pe, " has no program to launch");
  const RankLocks::Ticket ticket = calls_.lock(RankLocks::Mode::exclusive);
  require_program();
  LaunchStep step{{}, parts};
  if (part_variable != nullptr) {
    step.part_variable = {symbol_of(placement_, part_variable), part_variable};
    const struct dpu_symbol_t symbol = step.part_variable->symbol;
    if (symbol.size != 8 || symbol.address >= kMramAddress)
      fail(PIDCOMM_ERR_ARGUMENT, "part_variable ", part_variable,
           " must be a uint32_t[2] in WRAM; it has ", symbol.size, " bytes");
  }
  const uint64_t heap_base = heap_base_of(placement_);
  for (const pidcomm_access &access : accesses) {
    const uint64_t parts_of_access = access.is_cut != 0 ? parts : 1;
    if (access.bytes % (kWordBytes * parts_of_access) != 0)
      fail(PIDCOMM_ERR_SIZE, "the bytes of an access (", access.bytes, ") must be a multiple of ",
           kWordBytes * parts_of_access);
    const uint64_t begin =
        checked_window("launch", "access", access.window, access.bytes, heap_base);
    step.accesses.push_back(
        {{begin, begin + access.bytes, access.writes != 0}, access.is_cut != 0});
  }
  record_on_program(std::move(step));
}

void Stream::write(const char *name, const void *data, std::size_t bytes) {
  const RankLocks::Ticket ticket = calls_.lock(RankLocks::Mode::exclusive);
  require_program();
  const struct dpu_symbol_t symbol = symbol_of(placement_, name);
  if (symbol.address >= kMramAddress)
    fail(PIDCOMM_ERR_ARGUMENT, "variable ", name, " is not in WRAM");
  if (bytes % 4 != 0 || bytes > symbol.size)
    fail(PIDCOMM_ERR_SIZE, "bytes (", bytes, ") must be a multiple of 4 and at most the ",
         symbol.size, " bytes of variable ", name);
  const auto *const begin = static_cast<const std::byte *>(data);
  record_on_program(WriteStep{{symbol, name}, {begin, begin + bytes}});
}

void Stream::call(int (*function)(void *), void *context,
                  const std::vector<pidcomm_stream_host_access> &ranges) {
  CallStep step{function, context, {}};
  for (const pidcomm_stream_host_access &range : ranges) {
    const auto begin = reinterpret_cast<uintptr_t>(range.address);
    if (range.bytes > std::numeric_limits<uint64_t>::max() - begin)
      fail(PIDCOMM_ERR_ARGUMENT, "a range of ", range.bytes, " bytes at address ", begin,
           " ends beyond the last address");
    step.host.push_back({begin, begin + range.bytes, range.writes != 0});
  }
  if (ranges.empty()) step.host.push_back({0, std::numeric_limits<uint64_t>::max(), true});
  record(std::move(step));
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
  CollectiveStep step{&executor, request, {}, options, parts, executor.heap_base_now()};
  step.copy_borrowed();
  bool may_load = false;
  for (const uint32_t cuts : {1u, parts}) {
    const CollectivePart last(step, cuts - 1, cuts);
    check_host(last.plan, last.request);
    may_load = last.may_load();
  }
  if (may_load && !programs_.empty())
    fail(PIDCOMM_ERR_ARGUMENT, "the technique may replace the program of launches and writes");
  record(std::move(step));
  may_load_ = may_load_ || may_load;
}

}  // namespace pidcomm
