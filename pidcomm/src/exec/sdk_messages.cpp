#include "exec/sdk_messages.h"

#include <cstring>

#include "exec/clock.h"
#include "exec/parallel.h"
#include "exec/prepared_transfer.h"

namespace pidcomm {

void run_sdk_messages(const Plan &plan, const SdkForm &form, struct dpu_set_t set,
                      const Placement &placement, HostBuffer &buffer, pidcomm_trace &trace) {
  constexpr struct dpu_symbol_t kMram = {kMramAddress, static_cast<uint32_t>(kMramBytes)};
  const PeMessages &messages = *plan.messages;
  std::byte *const in = buffer.data(), *const out = in + form.source_bytes;
  trace.bytes_staged = form.staged_bytes;
  trace.host_bytes_read = trace.host_bytes_written = form.staged_bytes;
  const auto in_row = [&](uint32_t pe) { return in + pe * plan.in_pe_bytes; };
  const auto out_row = [&](uint32_t pe) { return out + pe * plan.out_pe_bytes; };

  const Stopwatch from_pes;
  if (plan.in_pe_bytes != 0)
    transfer_rows(DPU_XFER_FROM_DPU, set, placement, kMram, plan.src, plan.in_pe_bytes, in_row);
  if (!messages.fills_output()) {
    transfer_rows(DPU_XFER_FROM_DPU, set, placement, kMram, plan.dst, plan.out_pe_bytes, out_row);
    trace.mram_bytes_read += plan.out_pe_bytes * plan.cube.pes;
    trace.host_bytes_written += form.result_bytes;
  }
  trace.seconds_from_pes = from_pes.seconds("from_pes");

  const Stopwatch host_work;
  WorkQueue queue(messages.list().size(), plan.options.threads);
  run_threads(plan.options.threads, [&](int thread) {
    queue.each(thread, [&](uint64_t number) {
      const pidcomm_pe_message &message = messages.list()[number];
      for (uint64_t run = 0; run < message.runs; ++run) {
        std::byte *const to = out_row(message.to_pe) + message.to + run * message.to_step;
        if (message.from_pe == PIDCOMM_FILL) {
          const uint64_t word = uint64_t{message.from_step} << 32 | message.from;
          for (uint32_t byte = 0; byte < message.bytes; byte += kWordBytes)
            std::memcpy(to + byte, &word, kWordBytes);
        } else {
          std::memcpy(to, in_row(message.from_pe) + message.from + run * message.from_step,
                      message.bytes);
        }
      }
    });
  });
  trace.seconds_host = host_work.seconds("host");

  const Stopwatch to_pes;
  transfer_rows(DPU_XFER_TO_DPU, set, placement, kMram, plan.dst, plan.out_pe_bytes, out_row);
  trace.seconds_to_pes = to_pes.seconds("to_pes");
}

}  // namespace pidcomm
