#include "exec/sdk_rows.h"

#include <algorithm>
#include <cstring>

#include "base/bits.h"
#include "exec/clock.h"
#include "exec/device.h"
#include "exec/parallel.h"
#include "exec/prepared_transfer.h"
#include "exec/reducer.h"
#include "exec/row_fold.h"
#include "exec/sdk_messages.h"

namespace pidcomm {

namespace {

/// The source rows and result rows of a call.
struct Rows {
  std::byte *in = nullptr, *out = nullptr;
  std::byte *partials = nullptr;  // of folds: of each thread
  std::byte *host = nullptr;      // of the caller
};

constexpr struct dpu_symbol_t kMram = {kMramAddress, static_cast<uint32_t>(kMramBytes)};

/// Returns the compressed lane bits of a PE that the mask selects, if PEs reorder blocks, else 0.
uint32_t lane_index(const Plan &plan, const SdkForm &form, uint32_t pe) {
  return form.lane_mask == 0 ? 0 : extract_bits(plan.cube.place_of(pe) % kLanes, form.lane_mask);
}

/// Returns the scalar kernels, or `others` if the library is built without them.
const Kernels &scalar_or(const Kernels &others) {
  return isa_available(PIDCOMM_ISA_SCALAR) ? kernels_of(PIDCOMM_ISA_SCALAR) : others;
}

/// Returns where a PE's part of the caller's rows begins.
std::byte *host_row(const Plan &plan, std::byte *host, uint32_t pe, const Extent &extent) {
  return host + plan.grouping.group_of(pe) * plan.row_stride_bytes +
         (extent.per_member ? plan.grouping.member_of(pe) * plan.block_bytes : 0);
}

class HostWork {
 public:
  HostWork(const Plan &plan, const SdkForm &form, const Kernels &kernels, const Rows &rows)
      : plan_(plan),
        form_(form),
        grouping_(plan.grouping),
        kernels_(kernels),
        reducer_(reducer_of(form.is_scalar ? scalar_or(kernels) : kernels, plan)),
        rows_(rows) {}

  void run() const {
    if (plan_.fold)
      fold();
    else if (plan_.reduces)
      share([this](uint64_t unit) { reduce(unit); });
    else if (plan_.in.space == Space::host)
      share([this](uint64_t pe) { split(static_cast<uint32_t>(pe)); });
    else if (form_.has_result_per_pe)
      share([this](uint64_t pe) { exchange(static_cast<uint32_t>(pe)); });
    else
      share([this](uint64_t unit) { join(unit); });
  }

 private:
  std::byte *in_row(uint32_t pe) const { return rows_.in + pe * plan_.in_pe_bytes; }
  std::byte *out_row(uint32_t row) const {
    return rows_.out +
           row * (plan_.out.space == Space::host ? plan_.row_stride_bytes : form_.result_row_bytes);
  }

  template <class Body>
  void share(const Body &body) const {
    WorkQueue queue(form_.units, plan_.options.threads);
    run_threads(plan_.options.threads, [&](int thread) { queue.each(thread, body); });
  }

  /// Returns the number of the member or slot that has this lane index, in the section of `number`.
  /// Without PE reordering, returns `number`.
  uint32_t with_lane(uint32_t number, uint32_t lane) const {
    return (number & ~form_.low()) | (lane & form_.low());
  }

  void reduce(uint64_t unit) const {
    const uint32_t group = static_cast<uint32_t>(unit / form_.row_pieces),
                   piece = static_cast<uint32_t>(unit % form_.row_pieces),
                   slot = static_cast<uint32_t>(piece / form_.slot_pieces);
    const uint64_t first = piece % form_.slot_pieces * form_.piece_bytes;
    const uint64_t bytes = std::min(form_.piece_bytes, form_.slot_bytes - first);
    const auto source = [&](uint32_t member) {
      const uint32_t pe = grouping_.pe_at(group, member),
                     from = with_lane(slot, slot - lane_index(plan_, form_, pe));
      return in_row(pe) + from * form_.slot_bytes + first;
    };
    // Row r of a group that has several rows is for the lanes with index r.
    const auto target = [&](uint32_t row) {
      const uint32_t to = form_.rows_per_group == 1 ? slot : with_lane(0, row - slot);
      return out_row(group * form_.rows_per_group + row) + to * form_.slot_bytes + first;
    };
    std::byte *const result = target(0);
    std::memcpy(result, source(0), bytes);
    for (uint32_t member = 1; member < grouping_.group_pes; ++member)
      reducer_->combine(result, source(member), bytes);
    if (const auto finish = finish_of(plan_, grouping_.group_pes)) finish->apply(result, bytes);
    for (uint32_t row = 1; row < form_.rows_per_group; ++row)
      std::memcpy(target(row), result, bytes);
  }

  void fold() const {
    const RowFold row_fold(plan_, kernels_);
    WorkQueue queue(form_.units, plan_.options.threads);
    run_threads(plan_.options.threads, [&](int thread) {
      queue.each(thread, [&](uint64_t unit) {
        fold(row_fold, unit, rows_.partials + static_cast<uint64_t>(thread) * form_.partial_bytes);
      });
    });
  }

  void fold(const RowFold &row_fold, uint64_t unit, std::byte *partials) const {
    const Fold &fold = *plan_.fold;
    const uint32_t group = static_cast<uint32_t>(unit / form_.row_pieces);
    const uint64_t first = unit % form_.row_pieces * form_.piece_bytes;
    const uint64_t bytes = std::min(form_.piece_bytes, plan_.in_pe_bytes - first);
    for (uint32_t member = 0; member < grouping_.group_pes; ++member) {
      const uint32_t pe = grouping_.pe_at(group, member);
      if (fold.result == Fold::Result::before_own) {
        if (member == 0)
          fill_row(out_row(pe) + first, bytes, fold.identity);
        else
          row_fold.store(out_row(pe) + first, partials, bytes, member);
      }
      row_fold.add(partials, in_row(pe) + first, bytes, member == 0);
      if (fold.result == Fold::Result::up_to_own)
        row_fold.store(out_row(pe) + first, partials, bytes, member + 1);
    }
    if (!fold.scans()) row_fold.store(out_row(group) + first, partials, bytes, grouping_.group_pes);
  }

  void exchange(uint32_t pe) const {
    const uint32_t group = grouping_.group_of(pe), member = grouping_.member_of(pe);
    for (uint32_t q = 0; q < grouping_.group_pes; ++q) {
      const uint32_t from = grouping_.pe_at(group, with_lane(q, member - q)),
                     block = with_lane(member, q);
      std::memcpy(out_row(pe) + q * plan_.block_bytes, in_row(from) + block * plan_.block_bytes,
                  plan_.block_bytes);
    }
  }

  void join(uint64_t unit) const {
    const uint32_t row = static_cast<uint32_t>(unit / grouping_.group_pes),
                   q = static_cast<uint32_t>(unit % grouping_.group_pes),
                   lane = row % form_.rows_per_group,
                   from = grouping_.pe_at(row / form_.rows_per_group, with_lane(q, lane - q));
    std::memcpy(out_row(row) + q * plan_.block_bytes, in_row(from), plan_.block_bytes);
  }

  void split(uint32_t pe) const {
    std::memcpy(out_row(pe), host_row(plan_, rows_.host, pe, plan_.in), plan_.block_bytes);
  }

  const Plan &plan_;
  const SdkForm &form_;
  const Grouping &grouping_;
  const Kernels &kernels_;
  const Reducer *reducer_;
  const Rows rows_;
};

/// Applies the operator of a gather to the elements of each PE.
void finish_gathered(const Plan &plan, std::byte *host) {
  const Finish finish = *finish_of(plan, 1);
  WorkQueue queue(plan.cube.pes, plan.options.threads);
  run_threads(plan.options.threads, [&](int thread) {
    queue.each(thread, [&](uint64_t pe) {
      finish.apply(host_row(plan, host, static_cast<uint32_t>(pe), plan.out), plan.in_pe_bytes);
    });
  });
}

}  // namespace

bool is_whole(struct dpu_set_t set, const Placement &placement) {
  uint32_t dpus = 0;
  check_device(dpu_get_nr_dpus(set, &dpus), "counting the PEs");
  return dpus == placement.dpus.size();
}

void run_sdk_rows(const Plan &plan, const SdkForm &form, struct dpu_set_t set,
                  const Placement &placement, const Kernels &kernels, std::byte *host,
                  HostBuffer &buffer, pidcomm_trace &trace) {
  if (plan.messages != nullptr) {
    run_sdk_messages(plan, form, set, placement, buffer, trace);
    return;
  }
  const Grouping &grouping = plan.grouping;
  const bool from_host = plan.in.space == Space::host, to_host = plan.out.space == Space::host;
  Rows rows;
  rows.host = host;
  if (form.is_scalar) trace.isa = scalar_or(kernels).isa;
  if (form.has_host_work) {
    rows.in = buffer.data();
    rows.out = to_host ? host : buffer.data() + form.source_bytes;
    rows.partials = buffer.data() + form.staged_bytes -
                    static_cast<uint64_t>(plan.options.threads) * form.partial_bytes;
    trace.bytes_staged = form.staged_bytes;
    trace.host_bytes_written += form.staged_bytes;
    trace.host_bytes_read += form.staged_bytes;
  }
  Stopwatch from_pes;
  if (!from_host)
    transfer_rows(DPU_XFER_FROM_DPU, set, placement, kMram, pass_src_of(plan), plan.in_pe_bytes,
                  [&](uint32_t pe) {
                    return form.has_host_work ? rows.in + pe * plan.in_pe_bytes
                                              : host_row(plan, host, pe, plan.out);
                  });
  trace.seconds_from_pes = from_pes.seconds("from_pes");

  Stopwatch host_work;
  if (form.has_host_work) HostWork(plan, form, kernels, rows).run();
  if (!plan.reduces && plan.finish) finish_gathered(plan, host);
  trace.seconds_host = host_work.seconds("host");

  const auto result_of = [&](uint32_t pe) {
    if (!form.has_host_work) return host_row(plan, host, pe, plan.in);
    if (form.has_result_per_pe) return rows.out + pe * form.result_row_bytes;
    // reduce_scatter sends the member's block of the group's row; allreduce and allgather send a
    // complete row
    const uint32_t row = form.rows_per_group == 1 ? 0 : lane_index(plan, form, pe);
    return rows.out + (grouping.group_of(pe) * form.rows_per_group + row) * form.result_row_bytes +
           (plan.in.per_member ? grouping.member_of(pe) * plan.block_bytes : 0);
  };
  Stopwatch to_pes;
  if (form.broadcasts && is_whole(set, placement))
    check_device(dpu_broadcast_to_symbol(set, kMram, static_cast<uint32_t>(plan.dst), result_of(0),
                                         plan.out_pe_bytes, DPU_XFER_DEFAULT),
                 "writing to the PEs");
  else if (!to_host)
    transfer_rows(DPU_XFER_TO_DPU, set, placement, kMram, plan.dst, plan.out_pe_bytes, result_of);
  trace.seconds_to_pes = to_pes.seconds("to_pes");
}

}  // namespace pidcomm
