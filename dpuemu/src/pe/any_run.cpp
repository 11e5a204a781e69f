#include "pe/any_run.h"

#include <bit>
#include <utility>

#include "machine/debugger.h"
#include "machine/machine.h"

namespace dpuemu {

void AnyRun::begin(Pe &pe) {
  pe_ = &pe;
  has_ended_ = false;
  woken_ = 0;
  pe.has_run = true;
  pe.report = {};
  pe.fault = {};
  clock_.start();
}

AnyRun::After AnyRun::fault(FaultKind kind, uint32_t tasklet, std::string reason) {
  // The reason of a deadlock has a place for each tasklet.
  if (kind != FaultKind::kStopped && kind != FaultKind::kDeadlock) reason += place_of(tasklet);
  pe_->fault = {kind, tasklet, std::move(reason)};
  if (kind != FaultKind::kStopped) stop_at_fault(debugged_, *pe_->program, pe_->fault);
  end();
  return After::kStay;
}

void AnyRun::stop(const char *reason) {
  if (!has_ended_) fault(FaultKind::kStopped, 0, reason);
}

void AnyRun::end_as_endless() {
  if (has_ended_) return;
  uint32_t running = woken_ != 0 ? static_cast<uint32_t>(std::countr_zero(woken_))
                                 : clock_.next().tasklet;  // does not wait
  if (running == PeClock::kNobody) running = 0;
  fault(FaultKind::kEndless, running,
        "the PE ran for longer than DPUEMU_PATIENCE (" +
            std::to_string(Machine::instance().patience_seconds()) +
            " s of this computer): an endless loop, or a long program");
}

AnyRun::Step AnyRun::fail_without_memory() {
  pe_->fault.kind = FaultKind::kNoMemory;
  pe_->fault.reason.clear();
  if (!has_ended_) end();
  return Step::kEnded;
}

void AnyRun::end() {
  has_ended_ = true;
  woken_ = 0;
  pe_->report.instructions = clock_.instructions();
  pe_->report.cycles = clock_.cycles();
  debugged_.place = {};
  finish();
}

}  // namespace dpuemu
