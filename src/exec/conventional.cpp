#include "exec/conventional.h"

#include <algorithm>
#include <cstring>

#include "exec/clock.h"
#include "exec/device.h"
#include "exec/host_pass.h"
#include "exec/parallel.h"
#include "exec/prepared_transfer.h"

namespace pidcomm {

namespace {

/// Buffers of a call. Input rows: one per PE. Output rows: one per PE for alltoall, else one per group, shared by its members.
struct Rows {
  std::byte *in;
  std::byte *out;
  uint64_t in_bytes, out_bytes;
};

/// Moves `bytes` bytes between every PE's window and its row.
template <class RowOf>
void transfer(dpu_xfer_t direction, struct dpu_set_t set, const Placement &placement, uint64_t mram_offset, uint64_t bytes,
              const RowOf &row_of) {
  const PreparedTransfer prepared(set, placement);
  for (uint32_t pe = 0; pe < placement.dpus.size(); ++pe)
    check_device(dpu_prepare_xfer(dpu_set_from_dpu(placement.dpus[pe]), row_of(pe)), "preparing a transfer");
  const struct dpu_symbol_t mram = {kMramAddress, static_cast<uint32_t>(kMramBytes)};
  check_device(dpu_push_xfer_symbol(set, direction, mram, static_cast<uint32_t>(mram_offset), bytes, DPU_XFER_DEFAULT),
               direction == DPU_XFER_FROM_DPU ? "reading from the PEs" : "writing to the PEs");
}

class HostWork {
 public:
  HostWork(const Plan &plan, const Kernels &kernels, const Rows &rows)
      : plan_(plan), grouping_(plan.grouping), reducer_(reducer_of(kernels, plan)), rows_(rows) {}

  void run() const {
    if (plan_.reduces)
      share(grouping_.groups * pieces(rows_.in_bytes), [this](uint64_t unit) { reduce(unit); });
    else if (plan_.in.per_member)
      share(plan_.cube.pes, [this](uint64_t pe) { exchange(static_cast<uint32_t>(pe)); });
    else
      share(plan_.cube.pes, [this](uint64_t pe) { join(static_cast<uint32_t>(pe)); });
  }

 private:
  static uint64_t pieces(uint64_t bytes) { return (bytes + kPieceBytes - 1) / kPieceBytes; }
  std::byte *in_row(uint32_t pe) const { return rows_.in + pe * rows_.in_bytes; }
  std::byte *out_row(uint32_t row) const { return rows_.out + row * rows_.out_bytes; }

  template <class Body>
  void share(uint64_t units, const Body &body) const {
    WorkQueue queue(units, plan_.options.threads);
    run_threads(plan_.options.threads, [&](int thread) { queue.each(thread, body); });
  }

  void reduce(uint64_t unit) const {
    const uint32_t group = static_cast<uint32_t>(unit / pieces(rows_.in_bytes));
    const uint64_t first = unit % pieces(rows_.in_bytes) * kPieceBytes;
    const uint64_t bytes = std::min(kPieceBytes, rows_.in_bytes - first);
    std::byte *const result = out_row(group) + first;
    std::memcpy(result, in_row(grouping_.pe_at(group, 0)) + first, bytes);
    for (uint32_t member = 1; member < grouping_.group_pes; ++member)
      reducer_->combine(result, in_row(grouping_.pe_at(group, member)) + first, bytes);
  }

  void exchange(uint32_t pe) const {
    const uint32_t group = grouping_.group_of(pe), member = grouping_.member_of(pe);
    for (uint32_t q = 0; q < grouping_.group_pes; ++q)
      std::memcpy(out_row(pe) + q * plan_.block_bytes, in_row(grouping_.pe_at(group, q)) + member * plan_.block_bytes, plan_.block_bytes);
  }

  void join(uint32_t pe) const {
    std::memcpy(out_row(grouping_.group_of(pe)) + grouping_.member_of(pe) * plan_.block_bytes, in_row(pe), plan_.block_bytes);
  }

  const Plan &plan_;
  const Grouping &grouping_;
  const Reducer *reducer_;
  const Rows rows_;
};

}  // namespace

void run_conventional(const Plan &plan, struct dpu_set_t set, const Placement &placement, const Kernels &kernels, std::byte *host,
                      HostBuffer &buffer, pidcomm_trace &trace) {
  const Grouping &grouping = plan.grouping;
  const bool from_host = plan.in.space == Space::host, to_host = plan.out.space == Space::host;
  const bool is_direct = from_host || (to_host && !plan.reduces);
  const bool out_is_per_pe = plan.in.per_member && !plan.reduces;
  Rows rows{nullptr, nullptr, plan.in_pe_bytes, plan.reduces ? plan.in_pe_bytes : plan.out_pe_bytes};
  if (!is_direct) {
    const uint64_t in_bytes = plan.cube.pes * rows.in_bytes;
    const uint64_t out_bytes = to_host ? 0 : (out_is_per_pe ? plan.cube.pes : grouping.groups) * rows.out_bytes;
    buffer.require(in_bytes + out_bytes);
    rows.in = buffer.data();
    rows.out = to_host ? host : buffer.data() + in_bytes;
    trace.bytes_staged = in_bytes + out_bytes;
    trace.host_bytes_written += in_bytes + (to_host ? 0 : out_bytes);
    trace.host_bytes_read += in_bytes + (to_host ? 0 : out_bytes);
  }
  const auto host_row = [&](uint32_t pe, const Extent &extent, uint64_t row_bytes) {
    return host + grouping.group_of(pe) * row_bytes + (extent.per_member ? grouping.member_of(pe) * plan.block_bytes : 0);
  };

  Stopwatch from_pes;
  if (!from_host)
    transfer(DPU_XFER_FROM_DPU, set, placement, plan.src, plan.in_pe_bytes,
             [&](uint32_t pe) { return is_direct ? host_row(pe, plan.out, plan.out_row_bytes) : rows.in + pe * rows.in_bytes; });
  trace.seconds_from_pes = from_pes.seconds();

  Stopwatch host_work;
  if (!is_direct) HostWork(plan, kernels, rows).run();
  trace.seconds_host = host_work.seconds();

  Stopwatch to_pes;
  if (!to_host)
    transfer(DPU_XFER_TO_DPU, set, placement, plan.dst, plan.out_pe_bytes, [&](uint32_t pe) {
      if (from_host) return host_row(pe, plan.in, plan.in_row_bytes);
      if (out_is_per_pe) return rows.out + pe * rows.out_bytes;
      // reduce_scatter: the member's block of the group's row; allreduce, allgather: the row
      return rows.out + grouping.group_of(pe) * rows.out_bytes + (plan.in.per_member ? grouping.member_of(pe) * plan.block_bytes : 0);
    });
  trace.seconds_to_pes = to_pes.seconds();
}

}  // namespace pidcomm
