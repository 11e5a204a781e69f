#include "plan/forms.h"

#include <algorithm>
#include <concepts>

#include "base/overloaded.h"
#include "plan/make_form.h"
#include "plan/window.h"

namespace pidcomm {

namespace {

/// words: number of words of every stream, unless the collective cuts the streams into shorter
/// streams.
Sweep empty_sweep(uint64_t words, const Split &split) {
  Sweep sweep;
  sweep.words = words;
  sweep.split = split;
  return sweep;
}

/// Makes the sweep that does a collective's work. src: if the sweep reads MRAM, the MRAM byte at
/// which its input starts.
Sweep make_sweep(const FormInputs &inputs, uint64_t src) {
  const Plan &plan = inputs.plan;
  Sweep sweep = empty_sweep(plan.block_bytes / kWordBytes, inputs.split);
  sweep.lane_mask = inputs.split.lane_mask;
  sweep.k = inputs.split.k;
  sweep.rotates = (inputs.steps & PIDCOMM_STEP_PR) != 0;
  sweep.host_order = sweep.rotates
                         ? (inputs.steps & PIDCOMM_STEP_CM) == 0
                         : plan.reduces && !(plan.bytewise && inputs.split.has_lane_split());
  sweep.in.space = plan.in.space;
  sweep.out.space = plan.out.space;
  sweep.in.offset = sweep.in.space == Space::mram ? src : 0;
  sweep.out.offset = sweep.out.space == Space::mram ? plan.dst : 0;
  inputs.rule.sweep(plan, inputs.split, sweep);
  arrange(sweep);
  return sweep;
}

FoldForm make_fold(const Plan &plan) {
  // Rows of a thread that fit in a second-level cache, and the words of one call of a pass.
  constexpr uint64_t kRowsBytes = 256 << 10, kMostBytes = 256 * kWordBytes;
  const Fold &fold = *plan.fold;
  FoldForm form;
  form.sets = fold_sets_of(plan.cube, plan.grouping);
  const bool has_blocks = plan.in.per_member;  // reduce_scatter
  for (const FoldSet &set : form.sets) {
    for (const FoldSet::Batch &batch : set.batches)
      form.batch_egs = std::max(form.batch_egs, batch.egs);
    form.groups = std::max(form.groups, static_cast<uint32_t>(set.groups.size()));
    form.result_rows = std::max(form.result_rows, static_cast<uint32_t>(set.pes.size()));
  }
  const bool is_in_place = plan.src == plan.dst;
  if (!has_blocks)
    form.result_rows = form.groups;
  else if (!is_in_place)
    form.result_rows = kLanes;
  const uint64_t rows = uint64_t{form.batch_egs} * kLanes + kLanes + form.result_rows;
  const uint64_t bytes = fold.whole_units(
      std::min(kMostBytes,
               kRowsBytes * fold.unit_bytes /
                   (rows * fold.unit_bytes + form.groups * fold.partial_bytes(fold.unit_bytes))));
  form.chunk_words = static_cast<uint32_t>(bytes / kWordBytes);
  form.chunks = static_cast<uint32_t>((plan.block_bytes + bytes - 1) / bytes);
  return form;
}

}  // namespace

uint64_t checked_scratch(const Plan &plan, uint64_t scratch_bytes) {
  const uint64_t offset = plan.options.scratch_offset;
  const char *name = name_of_collective(plan.collective),
             *technique = name_of_technique(plan.options.technique);
  if (offset == 0)
    fail(PIDCOMM_ERR_WINDOW, name, ": technique ", technique, " needs ", scratch_bytes,
         " bytes of PE scratch in MRAM; set the scratch offset of the options, which cannot be 0");
  const uint64_t scratch = checked_window(name, "scratch", offset, scratch_bytes, plan.heap_base);
  const auto check_apart = [&](const char *side, uint64_t begin, uint64_t bytes) {
    if (scratch < begin + bytes && begin < scratch + scratch_bytes)
      fail(PIDCOMM_ERR_WINDOW, name, ": scratch [", heap_offset(plan, scratch), ", ",
           heap_offset(plan, scratch + scratch_bytes), ") and ", side, " [",
           heap_offset(plan, begin), ", ", heap_offset(plan, begin + bytes), ") overlap");
  };
  check_apart("source", plan.src, plan.in_pe_bytes);
  if (plan.out_pe_bytes != 0) check_apart("destination", plan.dst, plan.out_pe_bytes);
  return scratch;
}

PeSteps make_pe_steps(const FormInputs &inputs) {
  const Plan &plan = inputs.plan;
  const Split &split = inputs.split;
  PeSteps pes;
  pes.taken = inputs.steps;
  pes.pass_src = plan.src;
  // If the mask does not select lanes, all PEs of an entangled group are in different groups, and
  // PEs do not reorder blocks.
  if ((inputs.steps & PIDCOMM_STEP_PR) == 0 || split.k == 0) return pes;
  const bool has_blocks = inputs.rule.bytes_are_blocks();
  if (has_blocks && split.member_stride != 1)
    fail(PIDCOMM_ERR_OPTION, name_of_collective(plan.collective), ": technique ",
         name_of_technique(plan.options.technique), " with mask ", plan.mask, " of ",
         plan.cube.to_string(),
         ": the blocks that PEs reorder are not "
         "contiguous; use tile or conventional");
  if (!has_blocks && (plan.block_bytes / kWordBytes) % (uint64_t{1} << split.k) != 0)
    fail(PIDCOMM_ERR_SIZE, name_of_collective(plan.collective), ": technique ",
         name_of_technique(plan.options.technique), " cuts the vector into ", 1u << split.k,
         " blocks, one for each PE of a group in an entangled group; it needs bytes (", plan.bytes,
         ") divisible by ", 1u << split.k, " * ", kWordBytes);
  const Reorder reorder = {0,
                           0,
                           has_blocks ? plan.block_bytes : plan.block_bytes >> split.k,
                           has_blocks ? split.member_sections() : 1,
                           split.lane_mask,
                           split.k,
                           false};
  if (plan.in.per_member || plan.reduces) {
    pes.scratch_bytes = reorder.bytes();
    if (pes.scratch_bytes != 0) pes.pass_src = checked_scratch(plan, pes.scratch_bytes);
    pes.before = reorder;
    pes.before->from = plan.src;
    pes.before->to = pes.pass_src;
  }
  if (plan.out.space == Space::mram && (!plan.reduces || !plan.in.per_member)) {
    pes.after = reorder;
    pes.after->from = pes.after->to = plan.dst;
    pes.after->backwards = true;
  }
  return pes;
}

Form make_tile(const FormInputs &inputs) {
  if (inputs.plan.messages != nullptr) return MessageForm{};
  if (inputs.plan.fold) return make_fold(inputs.plan);
  return TileForm{make_sweep(inputs, inputs.plan.src)};
}

Form make_paper(const FormInputs &inputs) {
  PaperForm form;
  form.pes = make_pe_steps(inputs);
  form.sweep = make_sweep(inputs, form.pes.pass_src);
  return form;
}

namespace {

SdkForm make_message_rows(const Plan &plan) {
  SdkForm form;
  form.has_host_work = form.has_result_per_pe = true;
  form.result_row_bytes = plan.out_pe_bytes;
  form.source_bytes = plan.cube.pes * plan.in_pe_bytes;
  form.result_bytes = plan.cube.pes * plan.out_pe_bytes;
  form.staged_bytes = form.source_bytes + form.result_bytes;
  form.units = plan.messages->list().size();
  form.row_pieces = (form.units + plan.cube.pes - 1) / plan.cube.pes;
  return form;
}

/// Whether all PEs receive the same row.
bool has_one_result_row(const Plan &plan, const SdkForm &form) {
  const bool scans = plan.fold && plan.fold->scans();
  return plan.out.space == Space::mram && !plan.in.per_member && !scans &&
         plan.grouping.groups * form.rows_per_group == 1;
}

/// Sets the parts of a form that depend on the reordering by PEs.
void set_lanes(const Plan &plan, const Split &split, SdkForm &form) {
  form.lane_mask = split.lane_mask;
  form.lanes = 1u << split.k;
  if (!plan.in.per_member && plan.out.space == Space::mram) form.rows_per_group = form.lanes;
  form.slots = plan.in.per_member ? plan.grouping.group_pes : form.lanes;
}

/// Sets the sizes of the rows, and divides the work on them.
void set_rows(const Plan &plan, SdkForm &form) {
  const bool has_source = plan.in.space == Space::mram, has_result = plan.out.space == Space::mram;
  form.has_result_per_pe =
      has_result && ((plan.fold && plan.fold->scans()) || (plan.in.per_member && !plan.reduces));
  form.result_row_bytes = plan.reduces ? plan.in_pe_bytes : plan.out_pe_bytes + plan.out_row_bytes;
  form.source_bytes = plan.cube.pes * plan.in_pe_bytes;
  form.result_bytes =
      (form.has_result_per_pe ? uint64_t{plan.cube.pes}
                              : uint64_t{plan.grouping.groups} * form.rows_per_group) *
      form.result_row_bytes;
  form.staged_bytes = form.source_bytes + (has_result ? form.result_bytes : 0);
  form.piece_bytes = kPieceBytes;
  if (plan.fold) {
    const uint64_t unit = plan.fold->unit_bytes,
                   largest = std::max(unit, plan.fold->partial_bytes(unit));
    form.piece_bytes = plan.fold->whole_units(kPieceBytes * unit / largest);
    form.partial_bytes =
        (plan.fold->partial_bytes(form.piece_bytes) + kLineBytes - 1) / kLineBytes * kLineBytes;
    form.staged_bytes = (form.staged_bytes + kLineBytes - 1) / kLineBytes * kLineBytes +
                        static_cast<uint64_t>(plan.options.threads) * form.partial_bytes;
  }
  form.slot_bytes = plan.in_pe_bytes / form.slots;
  form.slot_pieces = (form.slot_bytes + form.piece_bytes - 1) / form.piece_bytes;
  if (plan.reduces) {
    form.row_pieces = form.slots * form.slot_pieces;
    form.units = plan.grouping.groups * form.row_pieces;
  } else {
    form.row_pieces = has_source ? blocks_of(plan.in, plan.grouping) * form.rows_per_group : 1;
    form.units = uint64_t{plan.cube.pes} * form.rows_per_group;
  }
}

}  // namespace

Form make_sdk(const FormInputs &inputs) {
  const Plan &plan = inputs.plan;
  if (plan.messages != nullptr) return make_message_rows(plan);
  SdkForm form;
  form.pes = make_pe_steps(inputs);
  if (form.pes.reorders()) set_lanes(plan, inputs.split, form);
  form.broadcasts = has_one_result_row(plan, form);
  form.has_host_work =
      plan.reduces || (plan.in.space == Space::mram && plan.out.space == Space::mram);
  if (form.has_host_work) set_rows(plan, form);
  return form;
}

Form make_baseline(const FormInputs &inputs) {
  const Plan &plan = inputs.plan;
  SdkForm form;
  form.is_scalar = plan.reduces;
  form.broadcasts = has_one_result_row(plan, form);
  form.has_host_work = plan.in.space == Space::mram || plan.in.per_member;
  if (form.has_host_work) set_rows(plan, form);
  return form;
}

const PeSteps *pe_steps_of(const Plan &plan) {
  return std::visit(
      [](const auto &form) -> const PeSteps * {
        if constexpr (std::same_as<decltype(form), const SdkForm &>)
          return form.pes.reorders() ? &form.pes : nullptr;
        else if constexpr (requires { form.pes; })
          return &form.pes;
        else
          return nullptr;
      },
      plan.form);
}

const MemberSteps *member_steps_of(const Plan &plan) {
  return std::visit(
      [](const auto &form) -> const MemberSteps * {
        if constexpr (requires { form.rounds; })
          return &form;
        else
          return nullptr;
      },
      plan.form);
}

bool reorders(const Plan &plan) {
  const PeSteps *pes = pe_steps_of(plan);
  return pes != nullptr && pes->reorders();
}

uint64_t pass_src_of(const Plan &plan) {
  const PeSteps *pes = pe_steps_of(plan);
  return pes != nullptr ? pes->pass_src : plan.src;
}

void each_sweep(const Plan &plan, const std::function<void(const Sweep &)> &visit) {
  std::visit(Overloaded{
                 [&](const TileForm &form) { visit(form.sweep); },
                 [&](const PaperForm &form) { visit(form.sweep); },
                 [&](const std::derived_from<MemberSteps> auto &form) {
                   each_member_step(plan, form, visit);
                 },
                 [](const MessageForm &) {},
                 [](const FoldForm &) {},
                 [](const SdkForm &) {},
             },
             plan.form);
}

}  // namespace pidcomm
