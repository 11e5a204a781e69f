#include "exec/form_pass.h"

#include <algorithm>
#include <new>

#include "base/error.h"
#include "exec/fold_pass.h"
#include "exec/message_pass.h"

namespace pidcomm {

namespace {

/// Carries out the form of a plan over acquired ranks, and adds the bytes of item buffers to the
/// trace.
class FormPass {
 public:
  /// tile: the sweep of a TileForm, or null.
  FormPass(const HostPass &pass, SweepRun *tile, pidcomm_trace &trace)
      : pass_(pass), tile_(tile), trace_(trace) {}

  void operator()(const TileForm &) const { trace_.bytes_staged += tile_->run(pass_); }

  void operator()(const PaperForm &form) const {
    trace_.bytes_staged += run_sweep(pass_, PreparedSweep(pass_.plan, form.sweep));
  }

  void operator()(const MemberSteps &) const {
    uint64_t sweep_bytes = 0;  // sweeps run one after the other
    try {
      each_sweep(pass_.plan, [&](const Sweep &sweep) {
        sweep_bytes = std::max(sweep_bytes, run_sweep(pass_, PreparedSweep(pass_.plan, sweep)));
      });
    } catch (const std::bad_alloc &) {
      const PeSteps *pes = pe_steps_of(pass_.plan);
      // If no byte has moved, the windows are unchanged. If the PEs have reordered blocks, the
      // caller reports which windows are undefined.
      if (sweep_bytes == 0 || (pes != nullptr && pes->before)) throw;
      fail(PIDCOMM_ERR_MEMORY,
           "the host is out of memory; the destination window is undefined now");
    }
    trace_.bytes_staged += sweep_bytes;
  }

  void operator()(const MessageForm &) const { run_messages(pass_, trace_); }

  void operator()(const FoldForm &form) const { run_fold(pass_, form, trace_); }

  void operator()(const SdkForm &) const {}  // run_sdk_rows does not use ranks

 private:
  const HostPass &pass_;
  SweepRun *tile_;
  pidcomm_trace &trace_;
};

}  // namespace

void run_form(const HostPass &pass, SweepRun *tile, pidcomm_trace &trace) {
  std::visit(FormPass(pass, tile, trace), pass.plan.form);
}

}  // namespace pidcomm
