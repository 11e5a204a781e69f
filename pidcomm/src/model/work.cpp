#include "model/work.h"

#include <algorithm>
#include <cmath>

#include "base/geometry.h"
#include "base/overloaded.h"

namespace pidcomm {

namespace {

constexpr double kLine = kLineBytes;

/// The work of one word of one item, except its loads and stores of lines.
struct Item {
  double transposes, shuffles, combines, rows_read, rows_written, buffered;
};

/// Returns the mean number of shuffles for an output line of the pass `merge`, estimated from the
/// first axis of a section: the lanes along a selected axis come from blocks of different members.
/// An alltoall that is not in place makes tiles; the estimate is for tiles of 8 lines, which are
/// shuffled once and then transposed over three lane bits.
double merge_shuffles_of(const Plan &plan, const Sweep &sweep) {
  const auto first_length = [](const std::vector<Grouping::Digit> &digits) {
    return digits.empty() || digits.front().pe_stride != 1
               ? 1.0
               : std::min<double>(digits.front().length, kLanes);
  };
  const double selected = first_length(sweep.split.section.selected);
  if (selected == 1)
    return 2;  // the lanes are a run of PEs, which usually begins in the middle of an entangled
               // group
  if (plan.in.per_member) return sweep.is_in_place() ? kLanes : 4;
  return kLanes / selected + 1;
}

/// in, out: the numbers of input and output streams of the item. Host rows are in host order, so
/// only lines of MRAM are transposed.
Item item_of(const Plan &plan, const Sweep &sweep, double in, double out) {
  const double k = sweep.k, ways = 1u << sweep.k;
  const double from = sweep.host_order && sweep.in.space == Space::mram,
               to = sweep.host_order && sweep.out.space == Space::mram;
  const double egs = sweep.split.section_egs, groups = sweep.split.section.groups,
               merge_shuffles = merge_shuffles_of(plan, sweep);
  const double host_rows =
      sweep.host_order
          ? in * from
          : 1;  // number of transposes for host rows: of every line, or only of the result
  switch (sweep.pass) {
#define PIDCOMM_ROW(name, does, transposes, shuffles, combines, rows_read, rows_written, buffered) \
  case Pass::name:                                                                                 \
    return {transposes, shuffles, combines, rows_read, rows_written, buffered};
    PIDCOMM_PASSES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  }
  return {};
}

Phase phase_of(const Plan &plan, const Sweep &sweep, LineWork combine) {
  Phase phase;
  const double items = static_cast<double>(items_of(sweep)),
               words = static_cast<double>(sweep.words), each = items * words;
  const double in = static_cast<double>(streams_of(sweep.in)),
               out = static_cast<double>(streams_of(sweep.out));
  const Item item = item_of(plan, sweep, in, out);
  phase.count(LineWork::transpose) = each * item.transposes;
  phase.count(LineWork::shuffle) = each * item.shuffles;
  phase.count(combine) = each * item.combines;
  phase.count(LineWork::buffer) = each * item.buffered;
  const auto side = [&](Space space, double streams, double rows, LineWork line, LineWork row,
                        double &mram, double &host) {
    const double lines = each * (space == Space::host ? rows / 8 : streams);
    phase.count(space == Space::host ? row : line) += lines;
    (space == Space::mram ? mram : host) += lines * kLine;
  };
  side(sweep.in.space, in, item.rows_read, LineWork::load, LineWork::row_load, phase.mram_read,
       phase.host_read);
  side(sweep.out.space, out, item.rows_written, LineWork::store, LineWork::row_store,
       phase.mram_written, phase.host_written);
  // A broadcast reads a row for every entangled group, but each host row is loaded from memory only
  // once and then from a cache.
  if (plan.in.space == Space::host && !plan.in.per_member)
    phase.host_read = static_cast<double>(plan.in_row_bytes) * plan.grouping.groups;
  const uint64_t units = iterations_of(sweep.outer) * parts_of(sweep);
  const auto pieces =
      static_cast<double>(pieces_of(units, sweep.words, plan.options.threads).count);
  phase.streams = items * (in + out) * std::max(pieces, std::ceil(words / kRunWords));
  phase.units = static_cast<double>(units) * pieces;
  return phase;
}

/// Returns the share of unpaired entangled groups. An entangled group is unpaired if the hypercube
/// does not use the second bank of its bank pair.
double unpaired_share(uint32_t pes) {
  const uint32_t egs = (pes + kLanes - 1) / kLanes,
                 last = egs % (2 * kPairEgs);  // in the last rank
  const uint32_t unpaired = last <= kPairEgs ? last : 2 * kPairEgs - last;
  return static_cast<double>(unpaired) / egs;
}

/// The work of messages. Lines that several targets load come from a cache after the first load.
Phase message_phase_of(const Plan &plan) {
  const PeMessages &messages = *plan.messages;
  const MessageLines &lines = messages.lines();
  const double loaded = static_cast<double>(lines.loaded),
               stored = static_cast<double>(lines.stored), kept = static_cast<double>(lines.kept),
               shuffled = static_cast<double>(lines.shuffled);
  Phase phase;
  phase.count(LineWork::load) = loaded;
  phase.count(LineWork::store) = stored;
  phase.count(LineWork::keep) = kept;
  phase.count(LineWork::shuffle) = shuffled;
  const double window = std::ceil(plan.cube.pes / static_cast<double>(kLanes)) *
                        static_cast<double>(plan.in_pe_bytes) / kWordBytes;
  phase.mram_read = (std::min(loaded, window) + kept) * kLine;
  phase.mram_written = stored * kLine;
  for (const MessageTarget &target : messages.targets())
    phase.streams += (1.0 + target.stream_count) * target.runs *
                     std::ceil(target.words / static_cast<double>(kRunWords));
  for (const RowUnit &unit : messages.row_units())
    phase.streams += 2.0 * std::ceil((unit.end_word - unit.first_word) / double{kRowPageWords});
  phase.units = static_cast<double>(messages.units().size() + messages.row_units().size());
  return phase;
}

/// The work of a fold. Each set loads its lines once, as for a shape with a lane split.
Phase fold_phase_of(const Plan &plan, const FoldForm &form, bool is_slow) {
  const double egs = std::ceil(plan.cube.pes / static_cast<double>(kLanes)),
               loaded = egs * static_cast<double>(plan.in_pe_bytes) / kWordBytes,
               stored = egs * static_cast<double>(plan.out_pe_bytes) / kWordBytes,
               rows = static_cast<double>(plan.out_row_bytes) * plan.grouping.groups / kLine;
  Phase phase;
  phase.count(LineWork::load) = loaded;
  phase.count(LineWork::store) = stored;
  phase.count(LineWork::transpose) = loaded + stored;
  phase.count(LineWork::shuffle) = 3 * (loaded + stored);
  phase.count(LineWork::row_store) = loaded + rows;
  phase.count(LineWork::row_load) = stored;
  phase.count(is_slow ? LineWork::slow_combine : LineWork::combine) = loaded;
  phase.mram_read = loaded * kLine;
  phase.mram_written = stored * kLine;
  phase.host_written = rows * kLine;
  phase.streams = (loaded + stored) / form.chunk_words;
  phase.units = static_cast<double>(form.sets.size()) * form.chunks;
  return phase;
}

void add_sdk(const Plan &plan, const SdkForm &form, bool is_slow, Work &work) {
  const double pes = plan.cube.pes, in = pes * static_cast<double>(plan.in_pe_bytes),
               out = pes * static_cast<double>(plan.out_pe_bytes);
  const double host_in = static_cast<double>(plan.in_row_bytes) * plan.grouping.groups,
               results = static_cast<double>(form.result_bytes);
  if (plan.in.space == Space::mram) {
    Phase phase{.kind = Phase::Kind::from_pes};
    phase.mram_read = in;
    phase.host_written = in;
    work.phases.push_back(phase);
  }
  if (form.has_host_work) {
    Phase phase{.kind = Phase::Kind::host};
    phase.host_read = in + host_in;
    phase.host_written = results;
    phase.combines = plan.reduces;
    phase.is_slow = is_slow;
    phase.is_scalar = form.is_scalar;
    phase.pieces = pes * static_cast<double>(form.row_pieces);
    phase.units = static_cast<double>(form.units);
    work.phases.push_back(phase);
  }
  if (plan.out.space == Space::mram) {
    Phase phase{.kind = Phase::Kind::to_pes};
    phase.is_broadcast = form.broadcasts;
    phase.mram_written = out;
    phase.host_read = form.has_host_work ? results : host_in;
    work.phases.push_back(phase);
  }
}

}  // namespace

bool is_slow(int op, const ElementType &type, int isa) {
  const bool is_float = type.kind == ElementType::Kind::floating;
  if (op == PIDCOMM_PROD) return !is_float && (type.size_bytes == 1 || type.size_bytes == 8);
  if (op != PIDCOMM_MIN && op != PIDCOMM_MAX) return false;
  const bool is_wide = isa == PIDCOMM_ISA_AVX512BW || isa == PIDCOMM_ISA_AVX512VBMI;
  return is_float || (type.size_bytes == 8 && !is_wide);
}

Work work_of(const Plan &plan, int isa) {
  Work work;
  if (plan.bytes == 0) return work;
  const bool slow = plan.reduces &&
                    ((plan.fold && plan.fold->has_operation()) || is_slow(plan.op, plan.type, isa));
  const LineWork combine = slow ? LineWork::slow_combine : LineWork::combine;
  work.pes = plan.cube.pes;
  work.ranks = std::ceil(work.pes / PIDCOMM_PES_PER_RANK);
  const double in = work.pes * static_cast<double>(plan.in_pe_bytes);
  const auto add_sweeps = [&] {
    each_sweep(plan,
               [&](const Sweep &sweep) { work.phases.push_back(phase_of(plan, sweep, combine)); });
  };
  std::visit(
      Overloaded{
          [&](const SdkForm &form) { add_sdk(plan, form, slow, work); },
          [&](const TileForm &) { add_sweeps(); },
          [&](const PaperForm &) { add_sweeps(); },
          [&](const MemberSteps &) { add_sweeps(); },
          [&](const FoldForm &form) { work.phases.push_back(fold_phase_of(plan, form, slow)); },
          [&](const MessageForm &) { work.phases.push_back(message_phase_of(plan)); },
      },
      plan.form);
  if (const PeSteps *pes = pe_steps_of(plan))
    for (const std::optional<Reorder> *reorder : {&pes->before, &pes->after})
      if (*reorder) work.reorders.push_back(**reorder);
  if (std::holds_alternative<SdkForm>(plan.form)) return work;
  if (plan.messages == nullptr &&
      plan.cube.pes % kLanes !=
          0) {  // the pass loads each line of the last entangled group before it stores the line
    const double kept = static_cast<double>(plan.out_pe_bytes) / kWordBytes;
    work.phases.back().count(LineWork::keep) = kept;
    work.phases.back().mram_read += kept * kLine;
    work.flushed_lines += kept;
  }
  work.flushed_lines += in / kLine;
  const double unpaired = unpaired_share(plan.cube.pes);
  for (Phase &phase : work.phases)
    phase.count(LineWork::unpaired) = unpaired * (phase.mram_read + phase.mram_written) / kLine;
  return work;
}

}  // namespace pidcomm
