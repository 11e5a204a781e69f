#include "pe/launch.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/door.h"
#include "base/report_file.h"
#include "base/worker_pool.h"
#include "check/callbacks.h"
#include "check/settings.h"
#include "machine/checked_memory.h"
#include "machine/debugger.h"
#include "machine/host_ownership.h"
#include "machine/job_queue.h"
#include "pe/scheduler.h"
#include "profile/profile.h"
#include "trace/trace.h"
#include "transfer/transfer.h"

namespace dpuemu {
namespace {

struct Members {
  Rank *rank;
  uint64_t dpus;  // PEs to run, as a bit set by dpu_index
};

std::vector<Members> members_of(const PinnedSet &set) {
  std::vector<Members> all;
  for (size_t i = 0; i < set.ranks().size(); ++i) all.push_back({set.ranks()[i], set.members(i)});
  return all;
}

bool have_programs(const std::vector<Members> &all) {
  bool have = true;
  for (const Members &members : all)
    for_each_dpu(members.dpus,
                 [&](uint32_t i) { have = have && members.rank->pes[i].program != nullptr; });
  return have;
}

bool await_host(const std::vector<Members> &all) {
  bool await = false;
  const Program *previous = nullptr;
  for (const Members &members : all)
    for_each_dpu(members.dpus, [&](uint32_t i) {
      const Program *const program = members.rank->pes[i].program;
      if (program != previous) await = await || program->find("__pe_await_host") != nullptr;
      previous = program;
    });
  return await;
}

uint64_t faulted_of(const Members &members) {
  uint64_t faulted = 0;
  for_each_dpu(members.dpus, [&](uint32_t i) {
    if (members.rank->pes[i].fault.kind != FaultKind::kNone) faulted |= UINT64_C(1) << i;
  });
  return faulted;
}

FaultPlace first_fault_of(const std::vector<Members> &all) {
  FaultPlace first = {nullptr, 0};
  for (const Members &members : all)
    for_each_dpu(faulted_of(members), [&](uint32_t i) {
      const auto is_stopped = [](const Rank &rank, uint32_t dpu) {
        return rank.pes[dpu].fault.kind == FaultKind::kStopped;
      };
      const bool is_cause = first.rank != nullptr && is_stopped(*first.rank, first.dpu_index) &&
                            !is_stopped(*members.rank, i);
      if (first.rank == nullptr || is_cause) first = {members.rank, i};
    });
  return first;
}

/// Appends one group per bank that has members.
void append_groups(const Members &members, std::vector<PeGroup> &groups) {
  for (uint32_t bank = 0; bank < kBanks; ++bank) {
    PeGroup group;
    for (uint32_t chip = 0; chip < kChips; ++chip) {
      const uint32_t i = dpu_index(chip, bank);
      if (members.dpus >> i & 1)
        group.push_back({&members.rank->pes[i], &members.rank->places, members.rank->id(), i,
                         MramPort(members.rank->region().base(), chip, bank)});
    }
    if (!group.empty()) groups.push_back(std::move(group));
  }
}

/// A launch for the checks of its PEs, from the call of the host to the end.
class CheckedLaunch {
 public:
  explicit CheckedLaunch(const std::vector<Members> &all) {
    if (!check_settings().is_on) return;
    for (const Members &members : all)
      for_each_dpu(members.dpus,
                   [&](uint32_t i) { memories_.push_back(&checked_memory(members.rank->pes[i])); });
    for (CheckedMemory *memory : memories_) memory->queue_launch();
  }
  CheckedLaunch(const CheckedLaunch &) = delete;
  CheckedLaunch &operator=(const CheckedLaunch &) = delete;
  ~CheckedLaunch() { end(); }
  void begin() {
    has_begun_ = true;
    for (CheckedMemory *memory : memories_) memory->begin_launch();
  }
  void end() {
    for (CheckedMemory *memory : std::exchange(memories_, {})) memory->end_launch(has_begun_);
  }

 private:
  std::vector<CheckedMemory *> memories_;
  bool has_begun_ = false;
};

/// Starts the PEs of the members. Rank::begin_run must have succeeded for all their ranks. When all
/// PEs have ended, ends the runs and calls on_end(whether a PE is in fault). caller_waits: until
/// then.
void start_members(std::vector<Members> all, StopFlag stop, bool caller_waits,
                   std::shared_ptr<CheckedLaunch> launch, std::function<void(bool)> on_end) {
  Machine &machine = Machine::instance();
  PeBatch batch;
  batch.is_strict = machine.is_strict();
  batch.is_checked = check_settings().is_on;
  batch.awaits_host = await_host(all);
  batch.patience = std::chrono::seconds(machine.patience_seconds());
  batch.is_stopped = std::move(stop);
  for (const Members &members : all) append_groups(members, batch.groups);
  uint64_t pes = 0;
  for (const PeGroup &group : batch.groups) pes += group.size();
  launch->begin();
  if (trace_is_on()) {
    std::vector<TracedRank> ranks;
    for (const Members &members : all) ranks.push_back({members.rank, members.dpus});
    batch.trace = std::make_shared<TracedLaunch>(std::move(ranks), caller_waits);
  }
  const uint64_t key = note_start(pes);
  const auto begin = std::chrono::steady_clock::now();
  batch.on_end = [all = std::move(all), on_end = std::move(on_end), begin, key,
                  launch = std::move(launch), trace = batch.trace, is_strict = batch.is_strict] {
    if (trace != nullptr) trace->end();
    note_end(key);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    launch->end();
    bool any_fault = false;
    for (const Members &members : all) members.rank->run_seconds = seconds;
    dpuemu_report_t report = {};
    for (const Members &members : all) add_to_report(*members.rank, members.dpus, report);
    char fault[DPUEMU_FAULT_BYTES] = "";
    if (const FaultPlace place = first_fault_of(all); place.rank != nullptr)
      describe_fault(place.rank->id(), place.dpu_index, place.rank->pes[place.dpu_index].fault,
                     fault, sizeof fault);
    append_to_report_file(report, fault);
    if (profile_is_on()) {
      std::vector<const Pe *> ended;
      for (const Members &members : all)
        for_each_dpu(members.dpus, [&](uint32_t i) { ended.push_back(&members.rank->pes[i]); });
      note_profiled_launch(ended);
    }
    for (const Members &members : all) {
      const uint64_t faulted = faulted_of(members);
      any_fault = any_fault || faulted != 0;
      if (is_strict) members.rank->protect_run();
      members.rank->end_run(faulted);
    }
    on_end(any_fault);
  };
  try {
    start_pes(std::move(batch), machine.threads());
  } catch (...) {
    note_end(key);
    throw;
  }
}

/// Begins the runs of all ranks. If begin_run fails for a rank, cancels the runs of all ranks.
dpu_error_t begin_runs(const std::vector<Members> &all, const StopFlag &stop, bool caller_waits) {
  for (size_t i = 0; i < all.size(); ++i) {
    const dpu_error_t status = all[i].rank->begin_run(all[i].dpus, stop, caller_waits);
    if (status == DPU_OK) continue;
    for (size_t j = 0; j < i; ++j) all[j].rank->cancel_run();
    return status;
  }
  return DPU_OK;
}

/// Calls begin_runs and start_members. If an error occurs before PEs run, cancels the runs.
dpu_error_t begin_and_start(const std::vector<Members> &all, bool caller_waits,
                            std::shared_ptr<CheckedLaunch> launch,
                            std::function<void(bool)> on_end) {
  if (!have_programs(all)) return DPU_ERR_NO_PROGRAM_LOADED;
  const auto stop = std::make_shared<std::atomic<bool>>(false);
  const dpu_error_t status = begin_runs(all, stop, caller_waits);
  if (status != DPU_OK) return status;
  try {
    start_members(all, stop, caller_waits, std::move(launch), std::move(on_end));
  } catch (...) {
    for (const Members &members : all) members.rank->cancel_run();
    throw;
  }
  return DPU_OK;
}

}  // namespace

dpu_error_t load_program(const PinnedSet &set, const Program &program) {
  const std::vector<Members> all = members_of(set);
  if (trace_is_on()) {
    std::vector<uint32_t> pes;
    for (const Members &members : all)
      for_each_dpu(members.dpus,
                   [&](uint32_t i) { pes.push_back(pe_number(members.rank->id(), i)); });
    choose_traced_pes(pes);
  }
  HostOwnership ownership;
  for (const Members &members : all)
    if (const dpu_error_t status = ownership.take(*members.rank); status != DPU_OK) return status;

  struct Target {
    Rank *rank;
    uint32_t index;
  };
  std::vector<Target> targets;
  bool has_room = true;
  for (const Members &members : all)
    for_each_dpu(members.dpus, [&](uint32_t i) {
      targets.push_back({members.rank, i});
      has_room = has_room && members.rank->open_wram(i);
    });
  if (!has_room) return DPU_ERR_SYSTEM;
  // The threads below cannot throw, so this thread makes WRAM accessible.
  std::vector<WramUse> uses;
  uses.reserve(targets.size());
  for (const Target &target : targets)
    uses.emplace_back(target.rank->places, target.index, Machine::instance().is_strict());
  std::vector<Transfer> transfers;
  for (const Program::MramPart &part : program.mram()) {
    Transfer transfer{Move::kBroadcast, Memory::kMram, part.offset, part.bytes.size(), {}};
    for (const Members &members : all) {
      RankBuffers entry{members.rank, {}};
      for_each_dpu(members.dpus, [&](uint32_t i) {
        entry.buffers.of_dpu[i] = const_cast<uint8_t *>(part.bytes.data());
      });
      transfer.ranks.push_back(entry);
    }
    transfers.push_back(std::move(transfer));
  }
  for (const Target &target : targets) {
    const bool has_text =
        program.code() != nullptr || target.rank->pes[target.index].text == &program;
    has_room = has_room && (has_text || target.rank->places.set_text(target.index,
                                                                     program.text_bytes(), false));
  }
  if (!has_room) {
    for (const Target &target : targets)
      if (const Program *text = target.rank->pes[target.index].text)
        target.rank->places.set_text(target.index, text->text_bytes(), true);
    return DPU_ERR_SYSTEM;
  }

  std::vector<Target> changed;
  for (const Target &target : targets) {
    if (program.code() != nullptr || target.rank->pes[target.index].text == &program) continue;
    changed.push_back(target);
    withdraw_code(target.rank->places.of(target.index));
  }

  std::atomic<bool> all_executable{true};
  parallel_for(targets.size(), Machine::instance().threads(), [&](uint64_t t) {
    Rank &rank = *targets[t].rank;
    const uint32_t i = targets[t].index;
    Pe &pe = rank.pes[i];
    const PePlace place = rank.places.of(i);
    if (program.counter_bytes() != 0 && !rank.places.open_counters(i, program.counter_bytes())) {
      all_executable = false;
      return;
    }
    if (program.code() == nullptr && pe.text != &program) {
      program.write_text(place, {dpuemu_gate, dpuemu_yield, check_callbacks()});
      const bool is_executable = rank.places.set_text(i, program.text_bytes(), true);
      pe.text = pe.program = is_executable ? &program : nullptr;
      if (!is_executable) {
        all_executable = false;
        return;
      }
    }
    program.write_wram(place, Machine::instance().chip());
    pe.program = &program;
    pe.code.reset();
    if (check_settings().is_on) checked_memory(pe).load(program);
    pe.fault = {};
    pe.log.clear();
    pe.log_status = DPU_OK;
  });
  if (!program.file().empty() && all_executable)
    for (const Target &target : changed)
      announce_code(program.file(), target.rank->places.of(target.index), target.rank->id(),
                    target.index);
  for (const Members &members : all) members.rank->forget_faults(members.dpus);
  for (const Transfer &transfer : transfers) move_bytes(transfer);
  return all_executable ? DPU_OK : DPU_ERR_SYSTEM;
}

dpu_error_t run_programs(const PinnedSet &set) {
  struct End {
    std::mutex mutex;
    std::condition_variable reached;
    bool is_reached = false, any_fault = false;
  };
  const auto end = std::make_shared<End>();
  const std::vector<Members> all = members_of(set);
  const auto launch = std::make_shared<CheckedLaunch>(all);
  const dpu_error_t status = begin_and_start(all, true, launch, [end](bool any_fault) {
    std::lock_guard<std::mutex> lock(end->mutex);
    end->is_reached = true;
    end->any_fault = any_fault;
    end->reached.notify_all();
  });
  if (status != DPU_OK) return status;
  std::unique_lock<std::mutex> lock(end->mutex);
  end->reached.wait(lock, [&] { return end->is_reached; });
  return end->any_fault ? DPU_ERR_DPU_FAULT : DPU_OK;
}

dpu_error_t queue_programs(const PinnedSet &set) {
  std::vector<Members> all = members_of(set);
  if (!have_programs(all)) return DPU_ERR_NO_PROGRAM_LOADED;
  std::vector<QueuedWork> work;
  for (const Members &members : all)
    work.push_back({members.rank, [members, launch = std::make_shared<CheckedLaunch>(
                                                std::vector<Members>{members})]() mutable {
                      return begin_and_start({members}, false, std::move(launch), [](bool) {});
                    }});
  enqueue_all(std::move(work), false);
  return DPU_OK;
}

FaultPlace first_fault(const PinnedSet &set) { return first_fault_of(members_of(set)); }

void add_to_report(const Rank &rank, uint64_t dpus, dpuemu_report_t &report) {
  report.cycles_per_second = Machine::instance().chip().cycles_per_second();
  for_each_dpu(dpus, [&](uint32_t i) {
    const Pe &pe = rank.pes[i];
    if (!pe.has_run) return;
    ++report.pes;
    report.faulted_pes += pe.fault.kind != FaultKind::kNone;
    report.dma_reads += pe.report.dma_reads;
    report.dma_read_bytes += pe.report.dma_read_bytes;
    report.dma_writes += pe.report.dma_writes;
    report.dma_write_bytes += pe.report.dma_write_bytes;
    report.masked_addresses += pe.report.masked_addresses;
    report.masked_sizes += pe.report.masked_sizes;
    report.direct_pages += pe.report.direct_pages;
    report.waiting_tasklets += pe.report.waiting_tasklets;
    report.instructions += pe.report.instructions;
    report.cycles_max = std::max(report.cycles_max, pe.report.cycles);
    report.cycles_sum += pe.report.cycles;
    report.host_seconds = std::max(report.host_seconds, rank.run_seconds);
  });
}

}  // namespace dpuemu
