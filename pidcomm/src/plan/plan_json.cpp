// Writes a plan as JSON. Values are numbers, or names that do not need escaping.
#include <concepts>

#include "base/overloaded.h"
#include "plan/json_writer.h"
#include "plan/plan.h"

namespace pidcomm {

namespace {

/// A row of PIDCOMM_PASSES.
struct PassText {
  const char *name, *does;
};
constexpr PassText kPassTexts[] = {
#define PIDCOMM_ROW(name, does, ...) {#name, does},
    PIDCOMM_PASSES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
};

constexpr const char *kSpaceNames[] = {"mram", "host"};

void write_loops(JsonWriter &json, const char *key, const std::vector<Loop> &loops) {
  json.open(key, '[');
  for (const Loop &loop : loops) {
    json.open(nullptr, '{');
    json.string("name", loop.name);
    json.number("count", loop.count);
    json.number("in_egs", loop.in_egs);
    json.number("in_bytes", loop.in_bytes);
    json.number("out_egs", loop.out_egs);
    json.number("out_bytes", loop.out_bytes);
    json.close('}');
  }
  json.close(']');
}

void write_side(JsonWriter &json, const char *key, const Side &side) {
  json.open(key, '{');
  json.string("space", kSpaceNames[static_cast<int>(side.space)]);
  if (side.eg != 0) json.number("eg", side.eg);
  json.number("offset_bytes", side.offset);
  json.open("streams", '[');
  for (const StreamLoop &loop : side.streams) {
    json.open(nullptr, '{');
    json.number("count", loop.count);
    json.number("egs", loop.egs);
    json.number("bytes", loop.bytes);
    json.close('}');
  }
  json.close(']');
  json.number("pair_banks", side.pair_banks);
  if (side.row_lanes != 0) {
    json.open("pe_rows", '{');
    json.number("lanes", side.row_lanes);
    json.number("member_bytes", side.member_bytes);
    json.number("group_bytes", side.group_bytes);
    json.close('}');
  }
  json.close('}');
}

/// One step of an expanded plan, with the starts of its first streams.
struct ExpandedStep {
  uint64_t in_eg, in_offset, out_eg, out_offset;
};

struct ExpandedLoop {
  Loop loop;
  bool goes_down;
};

/// Writes the steps in the order in which a thread executes them. In an in-place alltoall, one JSON
/// step stands for the exchange in both directions.
void expand_loops(const std::vector<ExpandedLoop> &loops, bool exchange, std::size_t depth,
                  ExpandedStep step, JsonWriter &json) {
  if (depth == loops.size()) {
    if (exchange && step.in_eg > step.out_eg) return;
    json.open(nullptr, '{');
    json.number("in_eg", step.in_eg);
    json.number("in_offset", step.in_offset);
    json.number("out_eg", step.out_eg);
    json.number("out_offset", step.out_offset);
    json.close('}');
    return;
  }
  const Loop &loop = loops[depth].loop;
  for (uint32_t i = 0; i < loop.count; ++i) {
    const uint64_t at = loops[depth].goes_down ? loop.count - 1 - i : i;
    expand_loops(loops, exchange, depth + 1,
                 {step.in_eg + at * loop.in_egs, step.in_offset + at * loop.in_bytes,
                  step.out_eg + at * loop.out_egs, step.out_offset + at * loop.out_bytes},
                 json);
  }
}

/// Writes the fields that only sweeps of member steps have.
void write_member_step(JsonWriter &json, const Sweep &sweep) {
  json.number("round", sweep.round);
  json.open("lane_map", '[');
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    json.number(nullptr, sweep.lane_map >> 8 * lane & 0xFF);
  json.close(']');
}

void write_sweep(JsonWriter &json, const Sweep &sweep, bool expand) {
  json.open(nullptr, '{');
  const PassText &pass = kPassTexts[static_cast<int>(sweep.pass)];
  json.string("pass", pass.name);
  json.string("does", pass.does);
  json.number("lane_mask", sweep.lane_mask);
  json.number("k", sweep.k);
  json.number("section_pes", sweep.split.section_pes());
  if (sweep.pass == Pass::member_step || sweep.pass == Pass::member_step_reduce)
    write_member_step(json, sweep);
  json.boolean("host_order", sweep.host_order);
  json.number("words", sweep.words);
  json.boolean("exchange", sweep.exchange);
  json.boolean("ordered_downwards", sweep.ordered_downwards);
  write_loops(json, "outer", sweep.outer);
  write_loops(json, "ordered", sweep.ordered);
  write_loops(json, "lockstep", sweep.lockstep);
  write_side(json, "in", sweep.in);
  write_side(json, "out", sweep.out);
  if (expand) {
    std::vector<ExpandedLoop> loops;
    for (const std::vector<Loop> *nest : {&sweep.outer, &sweep.ordered, &sweep.lockstep})
      for (const Loop &loop : *nest)
        loops.push_back({loop, nest == &sweep.ordered && sweep.ordered_downwards});
    json.open("steps", '[');
    expand_loops(loops, sweep.exchange, 0,
                 {sweep.in.eg, sweep.in.offset, sweep.out.eg, sweep.out.offset}, json);
    json.close(']');
  }
  json.close('}');
}

void write_reorder(JsonWriter &json, const char *key, const Reorder &reorder) {
  json.open(key, '{');
  json.number("from", reorder.from);
  json.number("to", reorder.to);
  json.number("block_bytes", reorder.block_bytes);
  json.number("parts", reorder.parts);
  json.number("ways", uint64_t{1} << reorder.k);
  json.boolean("backwards", reorder.backwards);
  json.close('}');
}

void write_pe_steps(JsonWriter &json, const PeSteps &pes) {
  json.number("steps", static_cast<uint64_t>(pes.taken));
  json.number("scratch_bytes", pes.scratch_bytes);
  if (pes.before) write_reorder(json, "before", *pes.before);
  if (pes.after) write_reorder(json, "after", *pes.after);
}

void write_member_steps(JsonWriter &json, const char *topology, const MemberSteps &steps) {
  json.open("member_steps", '{');
  json.string("topology", topology);
  json.number("rounds", steps.rounds);
  json.number("slot_bytes", steps.slot_bytes);
  json.boolean("copies_first", steps.copies);
  json.number("lane_mask", steps.split.lane_mask);
  json.open("members", '[');
  for (const EgLoop &loop : steps.split.members) {
    json.open(nullptr, '{');
    json.number("count", loop.count);
    json.number("egs", loop.eg_stride);
    json.close('}');
  }
  json.close(']');
  json.close('}');
}

void write_sdk(JsonWriter &json, const SdkForm &form) {
  json.open("sdk", '{');
  json.boolean("has_host_work", form.has_host_work);
  json.number("bytes_staged", form.staged_bytes);
  json.close('}');
}

void write_messages(JsonWriter &json, const PeMessages &messages, bool expand) {
  json.open("messages", '{');
  json.number("count", messages.list().size());
  json.number("bytes", messages.bytes());
  json.number("lines_loaded", messages.lines().loaded);
  json.number("lines_stored", messages.lines().stored);
  json.number("lines_kept", messages.lines().kept);
  json.boolean("in_place", messages.is_in_place());
  if (expand) {
    json.open("targets", '[');
    for (const MessageTarget &target : messages.targets()) {
      json.open(nullptr, '{');
      json.number("eg", target.eg);
      json.number("word", target.word);
      json.number("words", target.words);
      json.number("runs", target.runs);
      json.number("streams", target.stream_count);
      json.close('}');
    }
    json.close(']');
  }
  json.close('}');
}

void write_fold(JsonWriter &json, const FoldForm &form, bool expand) {
  json.open("fold", '{');
  json.number("sets", form.sets.size());
  json.number("chunks", form.chunks);
  json.number("chunk_words", form.chunk_words);
  if (expand) {
    json.open("batches", '[');
    for (const FoldSet &set : form.sets)
      for (const FoldSet::Batch &batch : set.batches) {
        json.open(nullptr, '{');
        json.number("first_eg", set.egs[batch.first_eg]);
        json.number("egs", batch.egs);
        json.number("pes", batch.pes);
        json.close('}');
      }
    json.close(']');
  }
  json.close('}');
}

}  // namespace

std::string to_json(const Plan &plan, bool expand) {
  JsonWriter json;
  json.open(nullptr, '{');
  json.string("collective", name_of_collective(plan.collective));
  json.string("technique", name_of_technique(plan.options.technique));
  json.string("path", std::visit([](const auto &form) { return form.kPath; }, plan.form));
  json.string("shape", plan.cube.to_string());
  json.string("mask", plan.mask);
  json.string("dtype", plan.fold && plan.fold->has_operation()
                           ? std::to_string(plan.fold->operation.element_bytes) + " bytes"
                           : name_of_type(plan.type.code));
  if (plan.reduces)
    json.string("op", plan.fold && plan.fold->has_operation() ? "operation" : name_of_op(plan.op));
  if (plan.finish) json.string("store", "operation");
  json.number("pes", plan.cube.pes);
  json.number("groups", plan.grouping.groups);
  json.number("group_pes", plan.grouping.group_pes);
  json.number("bytes_per_pe", plan.bytes);
  json.number("block_bytes", plan.block_bytes);
  const MemberSteps *steps = member_steps_of(plan);
  uint64_t read = plan.in_pe_bytes * plan.cube.pes, written = plan.out_pe_bytes * plan.cube.pes;
  if (steps != nullptr) {
    read = steps->bytes_read();
    written = steps->bytes_written();
  } else if (std::holds_alternative<MessageForm>(plan.form)) {
    const MessageLines &lines = plan.messages->lines();
    read = (lines.loaded + lines.kept) * kLineBytes;
    written = lines.stored * kLineBytes;
  }
  json.number("mram_bytes_read", read);
  json.number("mram_bytes_written", written);
  json.number("host_bytes", (plan.in_row_bytes + plan.out_row_bytes) * plan.grouping.groups);
  const TileForm *const tile = std::get_if<TileForm>(&plan.form);
  const bool is_host_order = tile != nullptr ? tile->sweep.host_order : !plan.bytewise;
  if (plan.reduces) json.string("reduces_in", is_host_order ? "host_order" : "pim_order");
  if (const PeSteps *pes = pe_steps_of(plan)) write_pe_steps(json, *pes);
  const auto write_sweeps = [&] {
    json.open("sweeps", '[');
    each_sweep(plan, [&](const Sweep &sweep) { write_sweep(json, sweep, expand); });
    json.close(']');
  };
  std::visit(Overloaded{
                 [&](const TileForm &) { write_sweeps(); },
                 [&](const PaperForm &) { write_sweeps(); },
                 [&](const std::derived_from<MemberSteps> auto &form) {
                   write_member_steps(json, form.kTopology, form);
                   if (expand) write_sweeps();
                 },
                 [&](const MessageForm &) { write_messages(json, *plan.messages, expand); },
                 [&](const FoldForm &form) { write_fold(json, form, expand); },
                 [&](const SdkForm &form) { write_sdk(json, form); },
             },
             plan.form);
  json.close('}');
  return json.text();
}

}  // namespace pidcomm
