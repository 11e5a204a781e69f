#include "plan/plan.h"

#include <optional>
#include <utility>

#include "base/sized.h"
#include "plan/make_form.h"
#include "plan/window.h"

namespace pidcomm {

namespace {

constexpr Extent extent_of(bool at_pes, bool per_member) {
  return {at_pes ? Space::mram : Space::host, per_member};
}

constexpr CollectiveRule kRules[] = {
#define PIDCOMM_ROW(ENUM, code, name, has_op, pes_before, pes_after, blocks_before, blocks_after, \
                    steps, ...)                                                                   \
  {code,  has_op != 0, extent_of(pes_before, blocks_before), extent_of(pes_after, blocks_after),  \
   steps, sweep_##name},
    PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
};

struct TechniqueRule {
  int code;
  Form (*make_form)(const FormInputs &inputs);
  int steps;
  uint32_t collectives;  // bit c is set if the technique works for the collective with code c
  bool needs_lane_split;
  bool is_for_auto;
  bool takes_operators;  // operators of the program

  bool is_for(int collective) const { return (collectives >> collective & 1) != 0; }
};

constexpr TechniqueRule kTechniqueRules[] = {
#define PIDCOMM_ROW(ENUM, code, name, path, steps, collectives, needs_lane_split, is_for_auto, \
                    takes_operators)                                                           \
  {code,                                                                                       \
   make_##path,                                                                                \
   steps,                                                                                      \
   collectives,                                                                                \
   needs_lane_split != 0,                                                                      \
   is_for_auto != 0,                                                                           \
   takes_operators != 0},
    PIDCOMM_TECHNIQUES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
};

const TechniqueRule &technique_rule(int technique) {
  for (const TechniqueRule &rule : kTechniqueRules)
    if (rule.code == technique) return rule;
  fail(PIDCOMM_ERR_INTERNAL, "no rule for technique code ", technique);
}

/// The rule of pidcomm_sendrecv, which has no row: messages replace groups and blocks.
constexpr CollectiveRule kMessageRule = {PIDCOMM_SENDRECV,     false, {Space::mram, false},
                                         {Space::mram, false}, 0,     nullptr};

constexpr CollectiveRule kScanRules[] = {
#define PIDCOMM_ROW(ENUM, code, name) \
  {code, true, {Space::mram, false}, {Space::mram, false}, 0, nullptr},
    PIDCOMM_SCANS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
};

/// Returns text such as "; use tile or conventional": the techniques of `auto` that work for a
/// collective on every shape.
std::string choices_for(int collective) {
  std::string names;
  for (const TechniqueRule &rule : kTechniqueRules)
    if (rule.is_for(collective) && rule.is_for_auto && !rule.needs_lane_split)
      names += (names.empty() ? "; use " : " or ") + std::string(name_of_technique(rule.code));
  return names;
}

void check_is_for(const TechniqueRule &technique, int collective) {
  if (technique.is_for(collective)) return;
  std::string served;
  for (const CollectiveRule &other : kRules)
    if (technique.is_for(other.code))
      served += (served.empty() ? "" : ", ") + std::string(name_of_collective(other.code));
  fail(PIDCOMM_ERR_OPTION, name_of_collective(collective), ": technique ",
       name_of_technique(technique.code), " is for ", served, choices_for(collective));
}

/// If no step of a technique applies to the collective, the call runs as `conventional`.
Form make_form(const Plan &plan, const CollectiveRule &collective, const TechniqueRule &technique) {
  int steps = plan.fold || plan.finish ? 0 : technique.steps & collective.steps;
  if (plan.reduces && !plan.bytewise) steps &= ~PIDCOMM_STEP_CM;
  const TechniqueRule &taken = technique.steps != 0 && steps == 0
                                   ? technique_rule(PIDCOMM_TECHNIQUE_CONVENTIONAL)
                                   : technique;
  const Split split = Split::of(plan.cube, plan.mask.c_str());
  if (taken.needs_lane_split && !plan.cube.has_lane_split())
    fail(PIDCOMM_ERR_OPTION, name_of_collective(plan.collective), ": technique ",
         name_of_technique(technique.code),
         " needs a shape with a lane split (the lengths before some axis must multiply to 1, 2 or "
         "4, and together with this axis to a "
         "multiple of ",
         kLanes, "); ", plan.cube.to_string(), " has none", choices_for(plan.collective));
  return taken.make_form({plan, collective, split, steps});
}

void check_sizes(const Plan &plan, const CollectiveRule &rule) {
  const char *name = name_of_collective(plan.collective);
  if (plan.bytes > kMramBytes)
    fail(PIDCOMM_ERR_WINDOW, name, ": ", plan.bytes, " bytes per PE are more than the ", kMramBytes,
         " bytes of MRAM that a PE has");
  const uint64_t unit = rule.bytes_are_blocks() ? plan.grouping.group_pes * kWordBytes : kWordBytes;
  if (plan.bytes % unit != 0) {
    if (rule.bytes_are_blocks())
      fail(PIDCOMM_ERR_SIZE, "mask ", plan.mask, " of ", plan.cube.to_string(), " selects ",
           plan.grouping.group_pes, " PEs; ", name, " needs bytes (", plan.bytes, ") divisible by ",
           plan.grouping.group_pes, " * ", kWordBytes);
    fail(PIDCOMM_ERR_SIZE, name, " needs bytes (", plan.bytes, ") divisible by ", kWordBytes);
  }
}

void check_overlap(const Plan &plan) {
  const uint64_t src_end = plan.src + plan.in_pe_bytes, dst_end = plan.dst + plan.out_pe_bytes;
  const bool is_disjoint = src_end <= plan.dst || dst_end <= plan.src;
  if (plan.src != plan.dst && !is_disjoint)
    fail(PIDCOMM_ERR_WINDOW, name_of_collective(plan.collective), ": source [",
         heap_offset(plan, plan.src), ", ", heap_offset(plan, src_end), ") and destination [",
         heap_offset(plan, plan.dst), ", ", heap_offset(plan, dst_end),
         ") overlap; they must be disjoint or start at the same offset (in place)");
}

}  // namespace

uint64_t blocks_of(const Extent &extent, const Grouping &grouping) {
  return extent.per_member ? grouping.group_pes : 1;
}

int64_t heap_offset(const Plan &plan, uint64_t mram_byte) {
  return static_cast<int64_t>(mram_byte) - static_cast<int64_t>(plan.heap_base);
}

uint64_t checked_window(const char *name, const char *side, uint64_t window, uint64_t size_bytes,
                        uint64_t heap_base) {
  // Larger values are negative numbers of a caller; errors show them as offsets.
  const bool is_in_heap =
      window < PIDCOMM_MRAM_WINDOW || window - PIDCOMM_MRAM_WINDOW > 2 * kMramBytes;
  const uint64_t offset = is_in_heap ? window : window - PIDCOMM_MRAM_WINDOW;
  if (offset % kWordBytes != 0)
    fail(PIDCOMM_ERR_WINDOW, name, ": ", side, is_in_heap ? " offset " : " MRAM byte ", offset,
         " is not a multiple of ", kWordBytes);
  const uint64_t begin = is_in_heap ? heap_base + offset : offset;
  if (offset > kMramBytes || size_bytes > kMramBytes || begin + size_bytes > kMramBytes) {
    if (is_in_heap)
      fail(PIDCOMM_ERR_WINDOW, name, ": ", side, " window of ", size_bytes, " bytes at offset ",
           offset, " from heap base ", heap_base, " ends past the ", kMramBytes, " bytes of MRAM");
    fail(PIDCOMM_ERR_WINDOW, name, ": ", side, " window of ", size_bytes, " bytes at MRAM byte ",
         offset, " ends past the ", kMramBytes, " bytes of MRAM");
  }
  return begin;
}

namespace {

void check_transposes(const Plan &plan, uint64_t host_transposes) {
  const char *name = name_of_collective(plan.collective),
             *technique = name_of_technique(plan.options.technique);
  if (host_transposes != 1 || plan.collective != PIDCOMM_GATHER ||
      plan.options.technique != PIDCOMM_TECHNIQUE_TILE)
    fail(PIDCOMM_ERR_OPTION, name, " with ", technique, ": host_transposes (", host_transposes,
         ") must be 0, or 1 for gather with tile");
  const uint64_t members = plan.grouping.group_pes;
  if (plan.bytes % (members * kWordBytes) != 0)
    fail(PIDCOMM_ERR_SIZE, name, " of ", members, " PEs with host_transposes needs bytes (",
         plan.bytes, ") divisible by ", members, " * ", kWordBytes);
}

}  // namespace

const CollectiveRule &rule_of(int collective) {
  if (collective == PIDCOMM_SENDRECV) return kMessageRule;
  for (const CollectiveRule &rule : kScanRules)
    if (rule.code == collective) return rule;
  for (const CollectiveRule &rule : kRules)
    if (rule.code == collective) return rule;
#define PIDCOMM_ROW(ENUM, code, ...) " PIDCOMM_" #ENUM " (" #code ")"
  fail(PIDCOMM_ERR_ARGUMENT, "collective code ", collective,
       " is unknown; use one of" PIDCOMM_COLLECTIVES(PIDCOMM_ROW));
#undef PIDCOMM_ROW
}

namespace {

/// Returns the operator of the program, or nullopt. Errors: ERR_ARGUMENT, ERR_OPTION.
std::optional<pidcomm_operator> operation_of(const pidcomm_request &request,
                                             const CollectiveRule &rule,
                                             const TechniqueRule &technique) {
  if (request.operation == nullptr) return std::nullopt;
  const char *name = name_of_collective(rule.code);
  const auto operation = received(request.operation, "operation");
  if (!rule.reduces && rule.code != PIDCOMM_GATHER)
    fail(PIDCOMM_ERR_ARGUMENT, name, " does not reduce; operation must be null");
  if (!rule.reduces && operation.combine != nullptr)
    fail(PIDCOMM_ERR_ARGUMENT, name, " does not reduce; its operation must have no combine");
  if (!technique.takes_operators)
    fail(PIDCOMM_ERR_OPTION, name, ": technique ", name_of_technique(technique.code),
         " is for the operators of PIDCOMM_OPS; use tile or conventional");
  return operation;
}

void check_elements(const Plan &plan) {
  const uint64_t unit = plan.fold->unit_bytes, element = plan.fold->operation.element_bytes;
  if (plan.block_bytes % unit != 0)
    fail(PIDCOMM_ERR_SIZE, name_of_collective(plan.collective), ": the operator has elements of ",
         element, " bytes; a block (", plan.block_bytes, " bytes) must be a multiple of ", unit,
         " bytes, the bytes of ", unit / element, " elements");
}

Plan make_message_plan(Plan plan, const pidcomm_request &request, const TechniqueRule &technique) {
  plan.mask = std::string(plan.cube.axes.size(), '1');
  plan.grouping = Grouping::of(plan.cube, plan.mask.c_str());
  plan.type = ElementType::of(PIDCOMM_UINT8);
  plan.messages = std::make_shared<const PeMessages>(plan.cube, request, plan.heap_base);
  plan.src = plan.messages->src();
  plan.dst = plan.messages->dst();
  plan.in_pe_bytes = plan.messages->in_bytes();
  plan.bytes = plan.block_bytes = plan.out_pe_bytes = plan.messages->out_bytes();
  plan.form = make_form(plan, kMessageRule, technique);
  return plan;
}

}  // namespace

Plan make_plan(const Hypercube &cube, const pidcomm_request &request, const Options &options,
               uint64_t heap_base) {
  const CollectiveRule &rule = rule_of(request.collective);
  const TechniqueRule &technique = technique_rule(options.technique);
  check_is_for(technique, rule.code);
  Plan plan;
  plan.collective = rule.code;
  plan.options = options;
  plan.cube = cube;
  plan.heap_base = heap_base;
  if (rule.code == PIDCOMM_SENDRECV) {
    operation_of(request, rule, technique);
    return make_message_plan(std::move(plan), request, technique);
  }
  plan.grouping = Grouping::of(cube, request.mask);
  plan.mask = request.mask;
  const std::optional<pidcomm_operator> operation = operation_of(request, rule, technique);
  const bool replaces_op = operation && operation->combine != nullptr;
  plan.type = ElementType::of(replaces_op ? PIDCOMM_UINT8 : request.type);
  if (operation) check_operator(*operation, plan.type);
  if (rule.reduces && !replaces_op) {
    check_op(request.op, plan.type);
    plan.op = request.op;
    plan.bytewise = is_bytewise(request.op, plan.type);
  }
  if (operation && !replaces_op) plan.finish = operation;
  // Passes keep lines of byte-wise operators in PIM order, so folds apply `store` to them.
  if (replaces_op || is_scan(rule.code) || (plan.finish && plan.bytewise)) {
    plan.fold = Fold::of(rule.code, operation ? &*operation : nullptr, plan.type, plan.op);
    plan.bytewise = false;
  }
  plan.reduces = rule.reduces;
  plan.in = rule.in;
  plan.out = rule.out;
  plan.bytes = request.bytes;
  check_sizes(plan, rule);
  plan.block_bytes = rule.bytes_are_blocks() ? plan.bytes / plan.grouping.group_pes : plan.bytes;
  if (replaces_op) check_elements(plan);
  const uint64_t in_bytes = plan.block_bytes * blocks_of(rule.in, plan.grouping);
  const uint64_t out_bytes = plan.block_bytes * blocks_of(rule.out, plan.grouping);
  const bool has_source = rule.in.space == Space::mram,
             has_destination = rule.out.space == Space::mram;
  (has_source ? plan.in_pe_bytes : plan.in_row_bytes) = in_bytes;
  (has_destination ? plan.out_pe_bytes : plan.out_row_bytes) = out_bytes;
  const char *name = name_of_collective(plan.collective);
  const uint64_t row_bytes = plan.in_row_bytes + plan.out_row_bytes;
  plan.row_stride_bytes = request.host_stride == 0 ? row_bytes : request.host_stride;
  if (row_bytes != 0 &&
      (plan.row_stride_bytes < row_bytes || plan.row_stride_bytes % kWordBytes != 0))
    fail(PIDCOMM_ERR_HOST_BUFFER, name, ": host_stride (", request.host_stride,
         ") must be a multiple of ", kWordBytes, " and at least the bytes of a host row (",
         row_bytes, ")");
  if (request.host_transposes != 0) check_transposes(plan, request.host_transposes);
  plan.transposes = request.host_transposes != 0;
  if (has_source)
    plan.src = checked_window(name, "source", request.src, plan.in_pe_bytes, heap_base);
  if (has_destination)
    plan.dst = checked_window(name, "destination", request.dst, plan.out_pe_bytes, heap_base);
  if (has_source && has_destination) check_overlap(plan);
  plan.form = make_form(plan, rule, technique);
  return plan;
}

void check_host(const Plan &plan, const pidcomm_request &request) {
  if (plan.in.space != Space::host && plan.out.space != Space::host) return;
  const uint64_t row_bytes = plan.in_row_bytes + plan.out_row_bytes;
  const uint64_t needed_bytes =
      row_bytes == 0 ? 0 : plan.row_stride_bytes * (plan.grouping.groups - 1) + row_bytes;
  const char *name = name_of_collective(plan.collective);
  if (request.host_bytes != needed_bytes)
    fail(PIDCOMM_ERR_HOST_BUFFER, name, ": the host buffer has ", request.host_bytes, " bytes; ",
         plan.grouping.groups, " groups with rows of ", row_bytes, " bytes need ", needed_bytes);
  if (request.host == nullptr && needed_bytes != 0)
    fail(PIDCOMM_ERR_HOST_BUFFER, name, ": the host buffer is null; it needs ", needed_bytes,
         " bytes");
}

}  // namespace pidcomm
