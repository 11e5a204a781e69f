#include "plan/plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "plan/window.h"

namespace pidcomm {

namespace {

constexpr Extent extent_of(bool at_pes, bool per_member) { return {at_pes ? Space::mram : Space::host, per_member}; }

constexpr CollectiveRule kRules[] = {
#define PIDCOMM_ROW(ENUM, code, name, has_op, pes_before, pes_after, blocks_before, blocks_after, steps) \
  {code, has_op != 0, extent_of(pes_before, blocks_before), extent_of(pes_after, blocks_after), steps, sweep_##name},
    PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
};

struct TechniqueRule {
  int code, steps;
  uint32_t collectives;  // bit c: it is for the one with code c

  bool is_for(int collective) const { return (collectives >> collective & 1) != 0; }
};

constexpr TechniqueRule kTechniqueRules[] = {
#define PIDCOMM_ROW(ENUM, code, name, steps, collectives) {code, steps, collectives},
    PIDCOMM_TECHNIQUES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
};

/// The rule of a technique that is for the collective.
const TechniqueRule &technique_rule(int technique, int collective) {
  for (const TechniqueRule &rule : kTechniqueRules) {
    if (rule.code != technique) continue;
    if (rule.is_for(collective)) return rule;
    std::string served;
    for (const CollectiveRule &other : kRules)
      if (rule.is_for(other.code)) served += (served.empty() ? "" : ", ") + std::string(name_of_collective(other.code));
    fail(PIDCOMM_ERR_OPTION, name_of_collective(collective), ": technique ", name_of_technique(technique), " is for ", served,
         "; use tile or conventional");
  }
  fail(PIDCOMM_ERR_INTERNAL, "no rule for technique code ", technique);
}

uint64_t blocks(const Extent &extent, const Grouping &grouping) { return extent.per_member ? grouping.group_pes : 1; }

void check_sizes(const Plan &plan, const CollectiveRule &rule) {
  const char *name = name_of_collective(plan.collective);
  if (plan.bytes > kMramBytes)
    fail(PIDCOMM_ERR_WINDOW, name, ": ", plan.bytes, " bytes per PE are more than the ", kMramBytes, " bytes of MRAM that a PE has");
  const uint64_t unit = rule.bytes_are_blocks() ? plan.grouping.group_pes * kWordBytes : kWordBytes;
  if (plan.bytes % unit != 0) {
    if (rule.bytes_are_blocks())
      fail(PIDCOMM_ERR_SIZE, "mask ", plan.mask, " of ", plan.cube.to_string(), " selects ", plan.grouping.group_pes, " PEs; ", name,
           " needs bytes (", plan.bytes, ") divisible by ", plan.grouping.group_pes, " * ", kWordBytes);
    fail(PIDCOMM_ERR_SIZE, name, " needs bytes (", plan.bytes, ") divisible by ", kWordBytes);
  }
}

void check_overlap(const Plan &plan, uint64_t src, uint64_t dst) {
  const bool is_disjoint = src + plan.in_pe_bytes <= dst || dst + plan.out_pe_bytes <= src;
  if (src != dst && !is_disjoint)
    fail(PIDCOMM_ERR_WINDOW, name_of_collective(plan.collective), ": source [", src, ", ", src + plan.in_pe_bytes, ") and destination [",
         dst, ", ", dst + plan.out_pe_bytes, ") overlap; they must be disjoint or start at the same offset (in place)");
}

void check_host(const Plan &plan, const pidcomm_request &request) {
  const uint64_t needed_bytes = (plan.in_row_bytes + plan.out_row_bytes) * plan.grouping.groups;
  const char *name = name_of_collective(plan.collective);
  if (request.host_bytes != needed_bytes)
    fail(PIDCOMM_ERR_HOST_BUFFER, name, ": the host buffer has ", request.host_bytes, " bytes; ", plan.grouping.groups,
         " groups with rows of ", plan.in_row_bytes + plan.out_row_bytes, " bytes need ", needed_bytes);
  if (request.host == nullptr && needed_bytes != 0)
    fail(PIDCOMM_ERR_HOST_BUFFER, name, ": the host buffer is null; it needs ", needed_bytes, " bytes");
}

/// Joins neighbouring loops that are one loop in disguise, and drops loops of one step.
void simplify(std::vector<Loop> &loops) {
  std::vector<Loop> joined;
  for (Loop &loop : loops) {
    if (loop.count == 1) continue;
    if (!joined.empty()) {
      Loop &slow = joined.back();
      const uint64_t n = loop.count;
      if (slow.name == loop.name && slow.in_egs == loop.in_egs * n && slow.out_egs == loop.out_egs * n &&
          slow.in_bytes == loop.in_bytes * n && slow.out_bytes == loop.out_bytes * n) {
        const uint32_t count = slow.count * loop.count;
        slow = std::move(loop);
        slow.count = count;
        continue;
      }
    }
    joined.push_back(std::move(loop));
  }
  loops = std::move(joined);
}

/// The step between the banks of a pair (d and d + 4) inside a loop of `count` steps of `egs` entangled groups: steps below it, and steps
/// above it. below = 0 if the loop has no such step.
struct BankPairStep {
  uint32_t below, above;
};
BankPairStep bank_pair_step(uint32_t count, uint32_t egs) {
  const uint32_t below = egs != 0 && kPairEgs % egs == 0 ? kPairEgs / egs : 0;
  if (below == 0 || count % (2 * below) != 0) return {0, 0};
  return {below, count / (2 * below)};
}

/// Moves the pair steps of the outer loops into lockstep; those of the output are the fastest, so that neighbouring lines are stored one
/// after the other. The banks below go along where an item has so few streams that one pair of banks would not keep memory busy. A step of
/// the input alone stays where it is when every item is stored to all members: the output is then the larger part by far, and has its own
/// pairs.
void visit_bank_pairs_in_lockstep(Sweep &sweep) {
  const bool stores_to_members =
      std::any_of(sweep.out.streams.begin(), sweep.out.streams.end(), [](const StreamLoop &loop) { return loop.egs != 0; });
  const uint32_t item_streams = std::max(streams_of(sweep.in), streams_of(sweep.out));
  const auto pair_of = [&](const Loop &loop) {
    return loop.out_egs == 0 && stores_to_members ? BankPairStep{0, 0} : bank_pair_step(loop.count, std::max(loop.in_egs, loop.out_egs));
  };
  uint32_t items = 1;
  for (const Loop &loop : sweep.outer)
    if (pair_of(loop).below != 0) items *= 2;
  if (items > kMaxItems) fail(PIDCOMM_ERR_INTERNAL, items, " items in lockstep; at most ", kMaxItems, " have a buffer");
  std::vector<Loop> rest;
  for (const Loop &loop : sweep.outer) {
    const BankPairStep pair = pair_of(loop);
    const auto part = [&](const char *suffix, uint32_t count, uint32_t times) {
      return Loop{loop.name + suffix, count, loop.in_egs * times, loop.out_egs * times, loop.in_bytes * times, loop.out_bytes * times};
    };
    if (pair.below == 0) {
      rest.push_back(loop);
      continue;
    }
    rest.push_back(part("", pair.above, 2 * pair.below));
    const bool takes_low = items * pair.below * item_streams <= kMaxItems;
    if (takes_low) items *= pair.below;
    (takes_low ? sweep.lockstep : rest).push_back(part("_low", pair.below, 1));
    const bool moves_output = loop.out_egs != 0;
    sweep.lockstep.insert(moves_output ? sweep.lockstep.end() : sweep.lockstep.begin(), part("_pair", 2, pair.below));
  }
  sweep.outer = std::move(rest);
}

/// Makes the pair step of the output's members the fastest loop, so that neighbouring lines are stored one after the other. (The order of
/// the input's members is that of the reduction, so it stays.)
void store_bank_pairs_together(Side &side) {
  std::vector<StreamLoop> members, pairs, blocks;
  const auto add = [](std::vector<StreamLoop> &streams, const StreamLoop &loop) {
    if (loop.count > 1) streams.push_back(loop);
  };
  for (const StreamLoop &loop : side.streams) {
    const BankPairStep pair = bank_pair_step(loop.count, loop.egs);
    if (pair.below == 0) {
      add(loop.egs == 0 ? blocks : members, loop);
      continue;
    }
    add(members, {pair.above, 2 * pair.below * loop.egs, 2 * pair.below * loop.bytes});
    add(members, {pair.below, loop.egs, loop.bytes});
    add(pairs, {2, pair.below * loop.egs, pair.below * loop.bytes});
  }
  side.pair_banks = pairs.empty() ? 1 : 2;
  side.streams = std::move(members);
  side.streams.insert(side.streams.end(), blocks.begin(), blocks.end());
  side.streams.insert(side.streams.end(), pairs.begin(), pairs.end());
}

/// words: of every stream, unless the collective cuts them further.
Sweep empty_sweep(uint64_t words) {
  Sweep sweep;
  sweep.words = words;
  return sweep;
}

/// The sweep that does a collective's work.
Sweep make_sweep(const Plan &plan, const CollectiveRule &rule, const LaneSplit &split) {
  Sweep sweep = empty_sweep(plan.block_bytes / kWordBytes);
  sweep.lane_mask = split.lane_mask;
  sweep.k = split.k;
  sweep.rotates = (plan.steps & PIDCOMM_STEP_PR) != 0;
  sweep.host_order = sweep.rotates ? (plan.steps & PIDCOMM_STEP_CM) == 0 : plan.reduces && !plan.bytewise;
  sweep.in.space = plan.via_host_memory ? Space::host_lines : plan.in.space;
  sweep.out.space = plan.out.space;
  sweep.in.offset = sweep.in.space == Space::mram ? plan.pass_src : 0;
  sweep.out.offset = sweep.out.space == Space::mram ? plan.dst : 0;
  rule.sweep(plan, split, sweep);
  arrange(sweep);
  return sweep;
}

/// Everything that the host pass reads, into host memory.
Sweep make_sweep_to_host_memory(const Plan &plan) {
  Sweep sweep = empty_sweep(plan.in_pe_bytes / kWordBytes);
  sweep.pass = Pass::rotate;
  sweep.host_order = true;
  sweep.in.offset = plan.pass_src;
  sweep.in.streams = sweep.out.streams = {{1, 0, 0}};
  sweep.out.space = Space::host_lines;
  sweep.outer = {{"entangled_group", plan.cube.pes / kLanes, 1, 1, 0, 0}};
  arrange(sweep);
  return sweep;
}

void check_scratch(const Plan &plan, const pidcomm_request &request, uint64_t heap_base) {
  const uint64_t offset = plan.options.scratch_offset;
  const char *name = name_of_collective(plan.collective), *technique = name_of_technique(plan.options.technique);
  if (offset == 0)
    fail(PIDCOMM_ERR_WINDOW, name, ": technique ", technique, " needs ", plan.scratch_bytes,
         " bytes of scratch MRAM at every PE; say where by scratch_offset, which cannot be 0");
  check_window(name, "scratch", offset, plan.scratch_bytes, heap_base);
  const auto check_apart = [&](const char *side, uint64_t begin, uint64_t bytes) {
    if (offset < begin + bytes && begin < offset + plan.scratch_bytes)
      fail(PIDCOMM_ERR_WINDOW, name, ": scratch [", offset, ", ", offset + plan.scratch_bytes, ") and ", side, " [", begin, ", ",
           begin + bytes, ") overlap");
  };
  check_apart("source", request.src, plan.in_pe_bytes);
  if (plan.out_pe_bytes != 0) check_apart("destination", request.dst, plan.out_pe_bytes);
}

/// The paper's steps: what the PEs reorder, and where the host pass reads from.
void plan_steps(Plan &plan, const CollectiveRule &rule, const LaneSplit &split, const pidcomm_request &request, uint64_t heap_base) {
  plan.via_host_memory = (plan.steps & PIDCOMM_STEP_IM) == 0;
  // Without selected lanes every lane is a group of its own: there is nothing to reorder.
  if ((plan.steps & PIDCOMM_STEP_PR) == 0 || split.k == 0) return;
  const bool has_blocks = rule.bytes_are_blocks();
  if (!has_blocks && (plan.block_bytes / kWordBytes) % (uint64_t{1} << split.k) != 0)
    fail(PIDCOMM_ERR_SIZE, name_of_collective(plan.collective), ": technique ", name_of_technique(plan.options.technique),
         " cuts the vector into ", 1u << split.k, " blocks, one for each PE of a group in an entangled group; it needs bytes (", plan.bytes,
         ") divisible by ", 1u << split.k, " * ", kWordBytes);
  const Reorder reorder = {
      0,       0,    has_blocks ? plan.block_bytes : plan.block_bytes >> split.k, has_blocks ? split.member_egs : 1, split.lane_mask,
      split.k, false};
  if (plan.in.per_member || plan.reduces) {
    plan.scratch_bytes = reorder.bytes();
    if (plan.scratch_bytes != 0) check_scratch(plan, request, heap_base);
    plan.pass_src = heap_base + plan.options.scratch_offset;
    plan.before = reorder;
    plan.before->from = plan.src;
    plan.before->to = plan.pass_src;
  }
  if (plan.out.space == Space::mram && (!plan.reduces || !plan.in.per_member)) {
    plan.after = reorder;
    plan.after->from = plan.after->to = plan.dst;
    plan.after->backwards = true;
  }
}

GeneralForm make_general(const Plan &plan) {
  GeneralForm form;
  const std::vector<uint32_t> cluster_of = clusters_of(plan.cube, plan.grouping);
  std::vector<uint32_t> size(cluster_of.size(), 0);
  for (uint32_t first : cluster_of) form.cluster_egs = std::max(form.cluster_egs, ++size[first]);
  // A slab row is one block of a PE (or group) for a chunk of words; where PEs are combined, an entangled group is read beside it. Rows
  // that go straight to or from host buffers need no slab.
  constexpr uint64_t kSlabTargetBytes = uint64_t{1} << 20, kSlabMaxBytes = uint64_t{64} << 20;
  constexpr uint64_t kMaxChunkWords = 256;
  const uint64_t cluster_pes = uint64_t{form.cluster_egs} * kLanes;
  const uint64_t cluster_rows = plan.reduces ? cluster_pes / plan.grouping.group_pes : cluster_pes;
  const uint64_t word_rows = cluster_rows * blocks(plan.in, plan.grouping);
  // A slab that stays in a core's cache, but not less than the 8 words that passes handle at once, unless that takes too much memory.
  const uint64_t word_bytes = word_rows * kWordBytes;
  uint64_t words = std::min(kSlabTargetBytes / word_bytes / kLanes * kLanes, kMaxChunkWords);
  if (words == 0) words = std::clamp<uint64_t>(kSlabMaxBytes / word_bytes, 1, kLanes);
  words = std::min(words, std::max<uint64_t>(plan.block_bytes / kWordBytes, 1));
  form.chunk_words = words;
  const bool is_direct = !plan.reduces && (plan.in.space == Space::host || plan.out.space == Space::host);
  form.slab_bytes = is_direct ? 0 : word_rows * words * kWordBytes;
  return form;
}

}  // namespace

void check_window(const char *name, const char *side, uint64_t offset, uint64_t size_bytes, uint64_t heap_base) {
  if (offset % kWordBytes != 0) fail(PIDCOMM_ERR_WINDOW, name, ": ", side, " offset ", offset, " is no multiple of ", kWordBytes);
  if (offset > kMramBytes || size_bytes > kMramBytes || heap_base + offset + size_bytes > kMramBytes)
    fail(PIDCOMM_ERR_WINDOW, name, ": ", side, " window of ", size_bytes, " bytes at offset ", offset, " from heap base ", heap_base,
         " ends past the ", kMramBytes, " bytes of MRAM");
}

uint64_t steps_of(const std::vector<Loop> &loops) {
  uint64_t steps = 1;
  for (const Loop &loop : loops) steps *= loop.count;
  return steps;
}

uint64_t items_of(const Sweep &sweep) { return steps_of(sweep.outer) * steps_of(sweep.ordered) * steps_of(sweep.lockstep); }

uint32_t streams_of(const Side &side) {
  uint32_t streams = 1;
  for (const StreamLoop &loop : side.streams) streams *= loop.count;
  return streams;
}

void arrange(Sweep &sweep) {
  visit_bank_pairs_in_lockstep(sweep);
  store_bank_pairs_together(sweep.out);
  for (std::vector<Loop> *loops : {&sweep.outer, &sweep.ordered, &sweep.lockstep}) simplify(*loops);
}

uint64_t pieces_of(const Sweep &sweep, int threads) {
  constexpr uint64_t kUnitsPerThread = 16;
  const uint64_t outer = steps_of(sweep.outer);
  const uint64_t wanted = kUnitsPerThread * static_cast<uint64_t>(threads);
  const uint64_t chunks = (sweep.words + kShareWords - 1) / kShareWords;
  return outer >= wanted ? 1 : std::min(chunks, (wanted + outer - 1) / outer);
}

const CollectiveRule &rule_of(int collective) {
  for (const CollectiveRule &rule : kRules)
    if (rule.code == collective) return rule;
#define PIDCOMM_ROW(ENUM, code, ...) " PIDCOMM_" #ENUM " (" #code ")"
  fail(PIDCOMM_ERR_ARGUMENT, "collective code ", collective, " is unknown; use one of" PIDCOMM_COLLECTIVES(PIDCOMM_ROW));
#undef PIDCOMM_ROW
}

Plan make_plan(const Hypercube &cube, const pidcomm_request &request, const Options &options, uint64_t heap_base, bool needs_host) {
  const CollectiveRule &rule = rule_of(request.collective);
  const TechniqueRule &technique = technique_rule(options.technique, rule.code);
  Plan plan;
  plan.collective = rule.code;
  plan.options = options;
  plan.cube = cube;
  plan.grouping = Grouping::of(cube, request.mask);
  plan.mask = request.mask;
  plan.type = ElementType::of(request.type);
  if (rule.reduces) {
    check_op(request.op, plan.type, request.type);
    plan.op = request.op;
    plan.bytewise = is_bytewise(request.op, plan.type);
  }
  plan.reduces = rule.reduces;
  plan.in = rule.in;
  plan.out = rule.out;
  plan.bytes = request.bytes;
  check_sizes(plan, rule);
  plan.block_bytes = rule.bytes_are_blocks() ? plan.bytes / plan.grouping.group_pes : plan.bytes;
  const uint64_t in_bytes = plan.block_bytes * blocks(rule.in, plan.grouping);
  const uint64_t out_bytes = plan.block_bytes * blocks(rule.out, plan.grouping);
  const bool has_source = rule.in.space == Space::mram, has_destination = rule.out.space == Space::mram;
  (has_source ? plan.in_pe_bytes : plan.in_row_bytes) = in_bytes;
  (has_destination ? plan.out_pe_bytes : plan.out_row_bytes) = out_bytes;
  const char *name = name_of_collective(plan.collective);
  if (has_source) check_window(name, "source", request.src, plan.in_pe_bytes, heap_base);
  if (has_destination) check_window(name, "destination", request.dst, plan.out_pe_bytes, heap_base);
  if (has_source && has_destination) check_overlap(plan, request.src, request.dst);
  if (needs_host && !(has_source && has_destination)) check_host(plan, request);
  plan.src = has_source ? heap_base + request.src : 0;
  plan.dst = has_destination ? heap_base + request.dst : 0;
  plan.pass_src = plan.src;
  plan.steps = technique.steps & rule.steps;
  if (plan.reduces && !plan.bytewise) plan.steps &= ~PIDCOMM_STEP_CM;
  const std::optional<LaneSplit> split = LaneSplit::of(cube, request.mask);
  if (options.technique == PIDCOMM_TECHNIQUE_TILE) {
    plan.path = split ? Path::tile : Path::general;
  } else if (options.technique == PIDCOMM_TECHNIQUE_RING || options.technique == PIDCOMM_TECHNIQUE_TREE) {
    plan.path = Path::member_steps;
  } else {
    plan.path = plan.steps != 0 ? Path::paper : Path::sdk;
  }
  if (plan.path == Path::general) plan.general = make_general(plan);
  if (plan.path == Path::paper || plan.path == Path::member_steps) {
    if (!split)
      fail(PIDCOMM_ERR_OPTION, name, ": technique ", name_of_technique(options.technique), " is for shapes that the ", kLanes,
           " lanes of an entangled group divide without a rest, which ", cube.to_string(), " is not; use tile or conventional");
    if (plan.steps != 0) plan_steps(plan, rule, *split, request, heap_base);
    if (plan.via_host_memory) plan.sweeps.push_back(make_sweep_to_host_memory(plan));
  }
  if (plan.path == Path::member_steps)
    plan.member_steps = make_member_steps(plan, *split);
  else if (split && plan.path != Path::sdk)
    plan.sweeps.push_back(make_sweep(plan, rule, *split));
  return plan;
}

std::vector<uint32_t> clusters_of(const Hypercube &cube, const Grouping &grouping) {
  std::vector<uint32_t> parent((cube.pes + kLanes - 1) / kLanes);
  std::iota(parent.begin(), parent.end(), 0u);
  const auto root = [&](uint32_t e) {
    while (parent[e] != e) e = parent[e] = parent[parent[e]];
    return e;
  };
  for (uint32_t pe = 0; pe < cube.pes; ++pe) {
    const uint32_t a = root(pe / kLanes);
    const uint32_t b = root(grouping.pe_at(grouping.group_of(pe), 0) / kLanes);
    parent[std::max(a, b)] = std::min(a, b);
  }
  for (uint32_t e = 0; e < parent.size(); ++e) parent[e] = root(e);
  return parent;
}

void add_loops(std::vector<Loop> &loops, const char *name, const std::vector<EgLoop> &egs, bool in_moves, uint64_t in_bytes, bool out_moves,
               uint64_t out_bytes) {
  for (auto loop = egs.rbegin(); loop != egs.rend(); ++loop)
    loops.push_back({name, loop->count, in_moves ? loop->eg_stride : 0, out_moves ? loop->eg_stride : 0, in_bytes * loop->index_stride,
                     out_bytes * loop->index_stride});
}

void add_slots(Sweep &sweep, Side &side, const LaneSplit &split, uint64_t vector_bytes) {
  const uint64_t slot_bytes = vector_bytes >> split.k;
  sweep.words = slot_bytes / kWordBytes;
  side.streams.push_back({1u << split.k, 0, slot_bytes});
}

void add_streams(Side &side, const std::vector<EgLoop> &egs) {
  for (auto loop = egs.rbegin(); loop != egs.rend(); ++loop) side.streams.push_back({loop->count, loop->eg_stride, 0});
}

void add_lane_streams(Side &side, const LaneSplit &split, uint64_t member_bytes, uint64_t group_bytes) {
  std::vector<StreamLoop> nest;
  uint64_t member_step = member_bytes, group_step = group_bytes;
  for (uint32_t bit = 0; bit < 3; ++bit) {
    uint64_t &step = split.lane_mask >> bit & 1 ? member_step : group_step;
    nest.push_back({2, 0, step});
    step *= 2;
  }
  side.streams.insert(side.streams.end(), nest.rbegin(), nest.rend());
}

}  // namespace pidcomm
