#include "doctor/fixture.h"

#include <algorithm>
#include <array>
#include <set>

#include "doctor/report.h"
#include "pidcomm/sdk_error.hpp"
#include "verify/fill.h"

namespace doctor {

namespace {

bool is_enabled(struct dpu_rank_t *rank, uint32_t chip, uint32_t bank) {
  struct dpu_t *const dpu =
      dpu_get(rank, static_cast<dpu_slice_id_t>(chip), static_cast<dpu_member_id_t>(bank));
  return dpu != nullptr && dpu_is_enabled(dpu);
}

struct Traits {
  bool takes_op, in_at_pes, out_at_pes, in_blocks, out_blocks;
};
#define PIDCOMM_ROW(ENUM, code, name, takes_op, in_at_pes, out_at_pes, in_blocks, out_blocks, ...) \
  {takes_op != 0, in_at_pes != 0, out_at_pes != 0, in_blocks != 0, out_blocks != 0},
constexpr Traits kTraits[] = {PIDCOMM_COLLECTIVES(PIDCOMM_ROW)};
#undef PIDCOMM_ROW

std::string describe(const Trial &trial) {
  std::string shape;
  for (const uint32_t length : trial.problem.axis_len)
    shape += joined(shape.empty() ? "" : "x", length);
  const bool takes_op = kTraits[trial.problem.collective].takes_op;
  return joined(pidcomm_name(PIDCOMM_TABLE_COLLECTIVE, trial.problem.collective), " ", shape,
                " mask ", trial.problem.mask, ", ", trial.problem.bytes, " bytes at ", trial.src,
                " to ", trial.dst, ", ", pidcomm_name(PIDCOMM_TABLE_TYPE, trial.problem.type),
                takes_op ? joined(" ", pidcomm_name(PIDCOMM_TABLE_OP, trial.problem.op)) : "",
                ", seed ", trial.seed);
}

}  // namespace

void check_sdk(dpu_error_t status, const std::string &doing) {
  if (status != DPU_OK) throw Failed(joined(doing, ": ", pidcomm::sdk_error_text(status)));
}

void check_library(int status, const std::string &doing) {
  if (status != PIDCOMM_OK) throw Failed(joined(doing, ": ", pidcomm_last_error()));
}

Dpus::Dpus(struct dpu_set_t set) : set_(set) {
  struct dpu_set_t dpu;
  DPU_FOREACH(set, dpu) dpus_.push_back(dpu);
}

Dpus Dpus::others() const {
  std::set<struct dpu_t *> mine;
  for (const struct dpu_set_t &dpu : dpus_) mine.insert(dpu_from_set(dpu));
  std::vector<struct dpu_set_t> others = Dpus(set_).dpus_;
  std::erase_if(others,
                [&](const struct dpu_set_t &dpu) { return mine.contains(dpu_from_set(dpu)); });
  return {set_, std::move(others)};
}

void Dpus::transfer(dpu_xfer_t direction, std::size_t address, Bytes &rows) const {
  if (rows.empty()) return;
  const std::size_t row_bytes = rows.size() / count();
  const struct dpu_symbol_t mram = {PIDCOMM_MRAM_ADDRESS, static_cast<uint32_t>(kMramBytes)};
  check_sdk(dpu_prepare_xfer(set_, nullptr), "preparing a transfer");
  for (std::size_t i = 0; i < count(); ++i)
    check_sdk(dpu_prepare_xfer(dpus_[i], rows.data() + i * row_bytes), "preparing a transfer");
  check_sdk(dpu_push_xfer_symbol(set_, direction, mram, static_cast<uint32_t>(address), row_bytes,
                                 DPU_XFER_DEFAULT),
            direction == DPU_XFER_FROM_DPU ? "reading by the SDK" : "writing by the SDK");
}

Bytes Dpus::read(std::size_t address, std::size_t row_bytes) const {
  Bytes rows(count() * row_bytes);
  transfer(DPU_XFER_FROM_DPU, address, rows);
  return rows;
}

Ranks::Ranks(uint32_t count, const std::string &profile) {
  struct dpu_set_t set;
  check_sdk(
      dpu_alloc_ranks(count, profile.c_str(), &set),
      joined("cannot allocate ", count == DPU_ALLOCATE_ALL ? "all free" : std::to_string(count),
             " ranks with the profile \"", profile,
             "\" (DIMMs need their driver, and ranks that no other process uses)"));
  set_ = set;
}

Ranks::~Ranks() { dpu_free(set_); }

uint32_t Ranks::whole_egs(uint32_t index) const {
  uint32_t egs = 0;
  for (uint32_t bank = 0; bank < kBanks; ++bank) {
    uint32_t lanes = 0;
    for (uint32_t lane = 0; lane < kLanes; ++lane) lanes += is_enabled(*rank(index), lane, bank);
    egs += lanes == kLanes;
  }
  return egs;
}

uint32_t Ranks::whole_egs() const {
  uint32_t egs = 0;
  for (uint32_t index = 0; index < count(); ++index) egs += whole_egs(index);
  return egs;
}

std::string Ranks::describe() const {
  uint32_t pes = 0, missing = 0;
  check_sdk(dpu_get_nr_dpus(set_, &pes), "counting PEs");
  std::string disabled;
  for (uint32_t index = 0; index < count(); ++index)
    for (uint32_t chip = 0; chip < kLanes; ++chip)
      for (uint32_t bank = 0; bank < kBanks; ++bank) {
        if (is_enabled(*rank(index), chip, bank)) continue;
        disabled += joined(missing++ == 0 ? "; disabled: rank " : ", rank ", index, " chip ", chip,
                           " bank ", bank);
      }
  return joined(count(), count() == 1 ? " rank, " : " ranks, ", pes, " PEs, ", kLanes * whole_egs(),
                " of them in whole entangled groups", disabled);
}

Cube::Cube(struct dpu_set_t set, Axes axis_len) : axis_len_(std::move(axis_len)) {
  check_library(pidcomm_hypercube_create(set, static_cast<uint32_t>(axis_len_.size()),
                                         axis_len_.data(), &cube_),
                "making a hypercube");
  std::vector<struct dpu_set_t> pes;
  struct dpu_set_t dpu;
  uint32_t pe;
  PIDCOMM_FOREACH_PE(cube_, dpu, pe) pes.push_back(dpu);
  dpus_.emplace(set, std::move(pes));
  others_ = dpus_->others();
}

std::size_t Cube::heap_base() const {
  struct dpu_program_t *const program = dpu_get_program(dpu_from_set(dpus_->front()));
  if (program == nullptr) return 0;
  struct dpu_symbol_t symbol;
  check_sdk(dpu_get_symbol(program, DPU_MRAM_HEAP_POINTER_NAME, &symbol),
            "reading the MRAM heap base");
  return symbol.address - PIDCOMM_MRAM_ADDRESS;
}

void Cube::write_by_library(std::size_t offset, const Bytes &rows) const {
  check_library(pidcomm_write(cube_, offset, rows.size() / pes(), rows.data()),
                "writing by the library");
}

Bytes Cube::read_by_library(std::size_t offset, std::size_t row_bytes) const {
  Bytes rows(pes() * row_bytes);
  check_library(pidcomm_read(cube_, offset, row_bytes, rows.data()), "reading by the library");
  return rows;
}

void Cube::check_rows(const Bytes &got, const Bytes &want, std::size_t row_bytes,
                      std::size_t offset, const std::string &what) const {
  const auto [a, b] = std::mismatch(got.begin(), got.end(), want.begin());
  if (a == got.end()) return;
  const auto at = static_cast<std::size_t>(a - got.begin());
  const auto pe = static_cast<uint32_t>(at / row_bytes);
  uint32_t rank = 0, chip = 0, bank = 0;
  check_library(pidcomm_pe_location(cube_, pe, &rank, &chip, &bank), "locating a PE");
  throw Failed(joined(what, "MRAM byte ", offset + at % row_bytes, " of PE ", pe, " (chip ", chip,
                      ", bank ", bank, " of rank ", rank, " of the set) is ", int{*a},
                      " and should be ", int{*b}));
}

pidcomm_trace run_trial(const Cube &cube, const Trial &trial) {
  const verify::Problem &problem = trial.problem;
  const verify::Rows in = verify::rows_before(problem), out = verify::rows_after(problem);
  Bytes before(in.bytes()), result(out.bytes(), 0xEE);
  verify::fill(verify::fill_for(kTraits[problem.collective].takes_op, problem.type, problem.op),
               problem.type, problem.op, trial.seed, in.row_bytes, before);
  if (out.at_pes) cube.write_by_sdk(trial.dst, result);
  if (in.at_pes) cube.write_by_sdk(trial.src, before);
  const auto bystanders = [&]() -> std::array<Bytes, 3> {
    if (!out.at_pes) return {};
    const std::size_t end = trial.dst + out.row_bytes;
    return {trial.dst < kWordBytes ? Bytes() : cube.read_by_sdk(trial.dst - kWordBytes, kWordBytes),
            end + kWordBytes > cube.room() ? Bytes() : cube.read_by_sdk(end, kWordBytes),
            cube.read_others(trial.dst, out.row_bytes)};
  };
  const std::array<Bytes, 3> left_alone = bystanders();
  Bytes &host = in.at_pes ? result : before;
  const bool has_host = !in.at_pes || !out.at_pes;
  pidcomm_request request{};
  request.collective = problem.collective;
  request.mask = problem.mask.c_str();
  request.bytes = problem.bytes;
  request.src = trial.src;
  request.dst = trial.dst;
  request.host = has_host ? host.data() : nullptr;
  request.host_bytes = has_host ? host.size() : 0;
  request.type = problem.type;
  request.op = problem.op;
  pidcomm_trace trace{};
  check_library(pidcomm_run(cube.get(), &request, &trial.options, &trace), describe(trial));
  const std::array<Bytes, 3> after = bystanders();
  constexpr const char *kBystanders[] = {"the word before the destination",
                                         "the word after the destination", "a DPU that is no PE"};
  for (std::size_t i = 0; i < after.size(); ++i)
    if (after[i] != left_alone[i])
      throw Failed(joined(describe(trial), ": ", kBystanders[i], " has changed"));
  const bool is_in_place = out.at_pes && trial.src == trial.dst;
  if (in.at_pes && !is_in_place && cube.read_by_sdk(trial.src, in.row_bytes) != before)
    throw Failed(joined(describe(trial), ": the source has changed"));
  if (out.at_pes) result = cube.read_by_sdk(trial.dst, out.row_bytes);
  const verify::Verdict verdict = verify::check(problem, before, result);
  if (verdict.wrong != 0)
    throw Failed(joined(describe(trial), ": ", verdict.wrong,
                        " elements are wrong, the first: ", verdict.first));
  return trace;
}

std::size_t bytes_of_call(int collective, uint32_t group_pes, std::size_t block_words) {
  const Traits &traits = kTraits[collective];
  const bool has_blocks =
      (traits.in_at_pes && traits.in_blocks) || (traits.out_at_pes && traits.out_blocks);
  return kWordBytes * block_words * (has_blocks ? group_pes : 1);
}

}  // namespace doctor
