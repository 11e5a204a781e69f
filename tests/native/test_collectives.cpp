// The eight collectives through the C API on emulated DIMMs, measured against the oracle.

#include <dpu_program.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "machine.h"
#include "pairwise.h"

namespace {

using machine::Axes;
using machine::Bytes;
using machine::Case;
using machine::DpuSet;
using machine::Grid;
using machine::Hypercube;
using verify::Fill;

/// Shapes for which `tile` transposes lanes in registers; between them every number and position of selected lane bits.
const std::vector<Axes> kFastShapes = {{8, 4}, {4, 8},    {2, 4, 4}, {2, 2, 2, 4}, {16, 3},    {4, 6},
                                       {8, 5}, {1, 8, 4}, {64},      {24},         {2, 1, 12}, {2, 2, 6}};
/// Shapes that take the general path, some with a partial last EG.
const std::vector<Axes> kGeneralShapes = {{3, 5}, {5, 7}, {12, 4}, {3, 8}, {6, 4}, {7}, {5, 3, 2}, {10, 10}, {12, 16}, {1}, {2, 3, 1}};

const int kCollectives[] = {PIDCOMM_ALLTOALL, PIDCOMM_REDUCE_SCATTER, PIDCOMM_ALLREDUCE, PIDCOMM_ALLGATHER,
                            PIDCOMM_SCATTER,  PIDCOMM_GATHER,         PIDCOMM_REDUCE,    PIDCOMM_BROADCAST};

/// A row of PIDCOMM_TECHNIQUES.
struct Technique {
  int code, steps;
  unsigned collectives;

  bool is_for(int collective) const { return (collectives >> collective & 1) != 0; }
};
const std::vector<Technique> kTechniques = {
#define TECHNIQUE_ROW(ENUM, code, name, steps, collectives) {code, steps, collectives},
    PIDCOMM_TECHNIQUES(TECHNIQUE_ROW)
#undef TECHNIQUE_ROW
};

const Technique &technique_of(int code) {
  return *std::find_if(kTechniques.begin(), kTechniques.end(), [code](const Technique &technique) { return technique.code == code; });
}

/// All techniques but some.
std::vector<int> techniques_without(const std::set<int> &left_out) {
  std::vector<int> codes;
  for (const Technique &technique : kTechniques)
    if (!left_out.contains(technique.code)) codes.push_back(technique.code);
  return codes;
}

/// The techniques that run the collective on the shape: on general shapes, tile and conventional.
std::vector<int> techniques_for(int collective, const Axes &axis_len) {
  std::vector<int> codes = {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_TECHNIQUE_CONVENTIONAL};
  if (!machine::is_fast(axis_len)) return codes;
  std::erase_if(codes = techniques_without({}), [&](int code) { return !technique_of(code).is_for(collective); });
  return codes;
}

/// The steps of the paper that a technique takes in a collective.
int steps_taken(int technique, int collective) {
  int steps = 0;
#define COLLECTIVE_ROW(ENUM, code, name, has_op, pes_before, pes_after, blocks_before, blocks_after, applicable) \
  if (code == collective) steps = applicable;
  PIDCOMM_COLLECTIVES(COLLECTIVE_ROW)
#undef COLLECTIVE_ROW
  return steps & technique_of(technique).steps;
}

/// Is there a host pass of the library's own? Else the SDK transfers everything.
bool has_host_pass(int technique, int collective) {
  if (technique == PIDCOMM_TECHNIQUE_CONVENTIONAL) return false;
  return technique_of(technique).steps == 0 || steps_taken(technique, collective) != 0;
}

/// Do the PEs reorder blocks? A group must have several PEs in an entangled group.
bool reorders(int technique, int collective, const Axes &axis_len, const std::string &mask) {
  if ((steps_taken(technique, collective) & PIDCOMM_STEP_PR) == 0) return false;
  std::uint32_t stride = 1;
  for (std::size_t axis = 0; axis < axis_len.size(); stride *= axis_len[axis++])
    if (mask[axis] == '1' && axis_len[axis] > 1 && stride < 8) return true;
  return false;
}

struct Element {
  int type, op;
};

/// Every element type with every operator that is defined for it, bare sizes included.
std::vector<Element> elements() {
  std::vector<Element> all;
  std::vector<int> types = {1, 2, 4, 8};
#define TYPE_ROW(ENUM, code, ...) types.push_back(code);
  PIDCOMM_TYPES(TYPE_ROW)
#undef TYPE_ROW
#define OP_ROW(ENUM, code, ...) \
  for (int type : types)        \
    if (verify::is_defined(code, type)) all.push_back({type, code});
  PIDCOMM_OPS(OP_ROW)
#undef OP_ROW
  return all;
}

std::size_t pes_of(const Axes &axis_len) {
  std::size_t pes = 1;
  for (std::uint32_t len : axis_len) pes *= len;
  return pes;
}

std::uint32_t ranks_for(const Axes &axis_len) { return static_cast<std::uint32_t>((pes_of(axis_len) + 63) / 64); }

bool can_be_in_place(int collective) {
  return collective == PIDCOMM_ALLTOALL || collective == PIDCOMM_REDUCE_SCATTER || collective == PIDCOMM_ALLREDUCE ||
         collective == PIDCOMM_ALLGATHER;
}

/// bytes per PE such that a block (where there are blocks) is `block_bytes`.
std::size_t bytes_for_blocks(int collective, std::uint32_t group_pes, std::size_t block_bytes) {
  return can_be_in_place(collective) && collective != PIDCOMM_ALLREDUCE ? group_pes * block_bytes : block_bytes;
}

/// The case with payload and type filled in as the collective needs it.
Case make_case(int collective, const Axes &axis_len, const std::string &mask, std::size_t bytes, Element element, std::uint64_t seed) {
  Case c;
  c.problem = {collective, axis_len, mask, bytes, element.type, element.op};
  c.fill = verify::fill_for(c.takes_op(), element.type, element.op);
  c.seed = seed;
  return c;
}

bool is_cut_by_lanes(int collective) { return collective == PIDCOMM_ALLREDUCE || collective == PIDCOMM_REDUCE; }

/// Sets the technique. If PEs reorder blocks there is scratch, and a vector that they cut into blocks grows to whole ones.
void use_technique(Case &c, int technique, std::size_t scratch_offset) {
  c.options.technique = technique;
  if (c.problem.bytes == 0 || !reorders(technique, c.problem.collective, c.problem.axis_len, c.problem.mask)) return;
  if (is_cut_by_lanes(c.problem.collective)) c.problem.bytes = (c.problem.bytes + 63) / 64 * 64;
  c.options.scratch_offset = scratch_offset;
}

/// A destination window behind the source window, at a distance that is no multiple of a line, or the source window itself.
void place(Case &c, std::size_t src, bool is_in_place) {
  c.src = src;
  c.dst = is_in_place ? src : src + verify::rows_before(c.problem).row_bytes + 8 * (1 + c.seed % 11);
}

void check_number(const Case &c, const char *field, std::uint64_t got, std::uint64_t low, std::uint64_t high) {
  if (got < low || got > high)
    machine::fail(std::string("trace.") + field + " is " + std::to_string(got) + ", not " + std::to_string(low) + " [" +
                  machine::describe(c) + "]");
}
void check_number(const Case &c, const char *field, std::uint64_t got, std::uint64_t want) { check_number(c, field, got, want, want); }

/// What the audit ISA must have counted for a tile on a fast shape: every line of the windows once.
void check_lines(const Case &c, const pidcomm_trace &trace) {
  const std::size_t egs = pes_of(c.problem.axis_len) / 8;
  const verify::Rows in = verify::rows_before(c.problem), out = verify::rows_after(c.problem);
  const std::uint64_t lines_in = in.at_pes ? egs * in.row_bytes / 8 : 0, lines_out = out.at_pes ? egs * out.row_bytes / 8 : 0;
  check_number(c, "lines_loaded", trace.lines_loaded, lines_in);
  check_number(c, "distinct_lines_loaded", trace.distinct_lines_loaded, lines_in);
  check_number(c, "max_loads_of_a_line", trace.max_loads_of_a_line, lines_in != 0);
  check_number(c, "lines_stored", trace.lines_stored, lines_out);
  check_number(c, "distinct_lines_stored", trace.distinct_lines_stored, lines_out);
  check_number(c, "max_stores_of_a_line", trace.max_stores_of_a_line, lines_out != 0);
  check_number(c, "lines_outside", trace.lines_outside, 0);
  if (c.options.coherence != PIDCOMM_COHERENCE_HARDWARE) return check_number(c, "lines_flushed", trace.lines_flushed, 0);
  check_number(c, "loads_unflushed", trace.loads_unflushed, 0);
  check_number(c, "lines_flushed", trace.lines_flushed, lines_in, UINT64_MAX);
}

void check_bytes_moved(const Case &c, const pidcomm_trace &trace) {
  const verify::Rows in = verify::rows_before(c.problem), out = verify::rows_after(c.problem);
  check_number(c, "mram_bytes_read", trace.mram_bytes_read, in.at_pes ? in.bytes() : 0);
  check_number(c, "mram_bytes_written", trace.mram_bytes_written, out.at_pes ? out.bytes() : 0);
  check_number(c, "host_bytes_read", trace.host_bytes_read, in.at_pes ? 0 : in.bytes());
  check_number(c, "host_bytes_written", trace.host_bytes_written, out.at_pes ? 0 : out.bytes());
}

/// What the audit ISA must have counted for ring and tree, which load and store a line many times.
void check_member_step_lines(const Case &c, const pidcomm_trace &trace) {
  check_number(c, "mram_bytes_read", trace.mram_bytes_read, 64 * trace.lines_loaded);
  check_number(c, "mram_bytes_written", trace.mram_bytes_written, 64 * trace.lines_stored);
  check_number(c, "lines_outside", trace.lines_outside, 0);
  if (c.options.coherence == PIDCOMM_COHERENCE_HARDWARE) check_number(c, "loads_unflushed", trace.loads_unflushed, 0);
}

/// What the audit ISA must have counted on the general path: lines are composed and stored whole.
void check_general_lines(const Case &c, const pidcomm_trace &trace) {
  const verify::Rows out = verify::rows_after(c.problem);
  const std::uint64_t lines_out = out.at_pes ? (pes_of(c.problem.axis_len) + 7) / 8 * (out.row_bytes / 8) : 0;
  check_number(c, "mram_bytes_read", trace.mram_bytes_read, 64 * trace.lines_loaded);
  check_number(c, "mram_bytes_written", trace.mram_bytes_written, 64 * trace.lines_stored);
  check_number(c, "lines_outside", trace.lines_outside, 0);
  check_number(c, "lines_stored", trace.lines_stored, lines_out);
  check_number(c, "max_stores_of_a_line", trace.max_stores_of_a_line, lines_out != 0);
  if (c.options.coherence == PIDCOMM_COHERENCE_HARDWARE) check_number(c, "loads_unflushed", trace.loads_unflushed, 0);
}

/// What the technique of a case claims about its trace.
void check_claims(const Case &c, const pidcomm_trace &trace) {
  const int technique = c.options.technique, collective = c.problem.collective;
  const bool has_launches = c.problem.bytes != 0 && reorders(technique, collective, c.problem.axis_len, c.problem.mask);
  const bool has_two = collective == PIDCOMM_ALLTOALL || collective == PIDCOMM_ALLREDUCE;
  check_number(c, "pe_launches", trace.pe_launches, has_launches ? 1 + has_two : 0);
  check_number(c, "pe_cycles", trace.pe_cycles, has_launches, has_launches ? UINT64_MAX : 0);
  if (!has_host_pass(technique, collective)) return;
  const bool has_member_steps = technique == PIDCOMM_TECHNIQUE_RING || technique == PIDCOMM_TECHNIQUE_TREE;
  const bool is_general = !has_member_steps && !machine::is_fast(c.problem.axis_len);
  const bool goes_via_host_memory = technique == PIDCOMM_TECHNIQUE_PR;
  if (!has_member_steps && !is_general && !goes_via_host_memory) check_bytes_moved(c, trace);
  if (c.options.isa == PIDCOMM_ISA_AUDIT)
    (has_member_steps ? check_member_step_lines : is_general ? check_general_lines : check_lines)(c, trace);
}

// ---- exhaustive grids: technique x collective x mask x lane split x in place x size --------------------------------------------------

const std::vector<int> kBothPolicies = {machine::kDefaultCoherence, PIDCOMM_COHERENCE_HARDWARE};

/// Which ISAs run a case: each but audit; audit; one, which is audit for one of the sizes.
enum class Isas { kEach, kAudit, kOne };

/// Every collective that the techniques are for, under every mask on every shape, in place or not. What is not listed takes turns.
struct Cases {
  const char *name;
  std::vector<Axes> shapes;
  std::vector<std::size_t> blocks_bytes;
  std::vector<int> techniques;
  Isas isas;
  std::vector<int> coherences;
};

const Cases kTile = {"tile, fast shapes", kFastShapes, {8, 24, 104}, {PIDCOMM_TECHNIQUE_TILE}, Isas::kEach, kBothPolicies};
const Cases kTileAudited = {"tile, audit", kFastShapes, {8, 24, 104}, {PIDCOMM_TECHNIQUE_TILE}, Isas::kAudit, {PIDCOMM_COHERENCE_HARDWARE}};
const Cases kTileUnflushed = {
    "tile, audit, no flushes",   {{8, 4}, {4, 6}, {2, 4, 4}}, {8, 24, 104}, {PIDCOMM_TECHNIQUE_TILE}, Isas::kAudit,
    {machine::kDefaultCoherence}};
const Cases kTileGeneral = {"tile, general shapes", kGeneralShapes, {8, 24, 104}, {PIDCOMM_TECHNIQUE_TILE}, Isas::kEach, kBothPolicies};
const Cases kTileGeneralAudited = {"tile, general shapes, audit", kGeneralShapes, {24},
                                   {PIDCOMM_TECHNIQUE_TILE},      Isas::kAudit,   {PIDCOMM_COHERENCE_HARDWARE}};
const Cases kOthers = {"the other techniques", kFastShapes, {8, 104, 1160, 4104}, techniques_without({PIDCOMM_TECHNIQUE_TILE}), Isas::kOne,
                       kBothPolicies};
const Cases kConventionalGeneral = {
    "conventional, general shapes", {{3, 5}, {12, 4}, {10, 10}}, {8, 24, 104}, {PIDCOMM_TECHNIQUE_CONVENTIONAL}, Isas::kOne, kBothPolicies};
// Entangled groups that are members in two loops, numbers of them that are no powers of two, and those that are neighbours.
const Cases kRingAndTree = {"ring and tree",
                            {{16, 3, 5}, {8, 3, 2, 5}, {2, 8, 7}, {4, 2, 16, 3}, {8, 11}, {128}},
                            {0, 8, 24, 104, 1160},
                            {PIDCOMM_TECHNIQUE_RING, PIDCOMM_TECHNIQUE_TREE},
                            Isas::kOne,
                            kBothPolicies};
const Cases *const kAllCases[] = {&kTile,   &kTileAudited,         &kTileUnflushed, &kTileGeneral, &kTileGeneralAudited,
                                  &kOthers, &kConventionalGeneral, &kRingAndTree};

/// What takes turns: for each technique, collective and list of ISAs by itself, so that none of them decides another.
class Turns {
 public:
  static constexpr std::size_t kThreads = 3;
  struct Choice {
    Element kind;
    int isa, threads, coherence;
  };
  /// Every lap through the kinds begins one further on and goes one further on in all else, so a kind meets another ISA, number of threads
  /// and policy in each. Within a lap each of these changes at a pace of its own, so they meet each other.
  Choice next(int technique, int collective, const std::vector<int> &isas, const std::vector<int> &coherences) {
    const Key key = {technique, collective, isas.front()};
    const std::size_t turn = turns_.try_emplace(key, turns_.size() * kinds_.size()).first->second++;
    const std::size_t lap = turn / kinds_.size(), kind = (turn + lap) % kinds_.size();
    return {kinds_[kind], isas[(kind + lap) % isas.size()], static_cast<int>(1 + (kind / 3 + lap) % kThreads),
            coherences[(kind / 9 + lap) % coherences.size()]};
  }
  std::uint64_t next_number() { return ++number_; }

 private:
  using Key = std::tuple<int, int, int>;
  std::vector<Element> kinds_ = elements();
  std::map<Key, std::size_t> turns_;
  std::uint64_t number_ = 0;
};

/// visit(case) for every case on a shape, on a machine that has these ISAs.
template <class Visit>
void each_case(const Cases &cases, const Axes &axis_len, const std::vector<int> &isas, Turns &turns, const Visit &visit) {
  std::vector<int> not_audit = isas;
  std::erase(not_audit, PIDCOMM_ISA_AUDIT);
  std::vector<std::vector<int>> each;
  for (int isa : not_audit) each.push_back({isa});
  const std::vector<std::vector<int>> audit = {{PIDCOMM_ISA_AUDIT}}, one = {not_audit};

  const auto visit_one = [&](int collective, const std::string &mask, bool is_in_place, std::size_t block_bytes, int technique,
                             const std::vector<int> &list) {
    const Turns::Choice choice = turns.next(technique, collective, list, cases.coherences);
    const std::uint64_t seed = turns.next_number(), place_of = verify::mix(seed) % 18;
    // Blocks that PEs cut into 8 are as large as others.
    const bool is_cut = is_cut_by_lanes(collective) && reorders(technique, collective, axis_len, mask);
    const std::size_t bytes =
        bytes_for_blocks(collective, verify::groups_of(axis_len, mask).group_pes, is_cut ? 8 * block_bytes : block_bytes);
    Case c = make_case(collective, axis_len, mask, bytes, choice.kind, seed);
    c.options = {technique, choice.isa, choice.threads, choice.coherence, 0};
    use_technique(c, technique, (1u << 20) - 8 * (seed % 50));
    place(c, place_of < 9 ? 64 + 8 * place_of : 8192 - 8 * (place_of - 9), is_in_place);
    visit(c);
  };
  for (const std::string &mask : machine::masks_of(axis_len.size()))
    for (int collective : kCollectives)
      for (bool is_in_place : {false, true}) {
        if (is_in_place && !can_be_in_place(collective)) continue;
        for (int technique : cases.techniques) {
          if (!technique_of(technique).is_for(collective)) continue;
          const std::size_t audited_size = verify::mix(turns.next_number()) % cases.blocks_bytes.size();
          for (std::size_t size = 0; size < cases.blocks_bytes.size(); ++size) {
            const bool is_audited = cases.isas == Isas::kAudit || (cases.isas == Isas::kOne && size == audited_size);
            for (const std::vector<int> &list : is_audited ? audit : cases.isas == Isas::kEach ? each : one)
              visit_one(collective, mask, is_in_place, cases.blocks_bytes[size], technique, list);
          }
        }
      }
}

void run_grid(const Cases &cases) {
  Grid grid(cases.name);
  const std::vector<int> isas = machine::available_isas();
  Turns turns;
  for (const Axes &axis_len : cases.shapes) {
    machine::power_up(ranks_for(axis_len));
    const DpuSet set = DpuSet::of_ranks(ranks_for(axis_len));
    const Hypercube cube(set, axis_len);
    each_case(cases, axis_len, isas, turns, [&](const Case &c) { grid.run([&] { check_claims(c, machine::run_case(cube, c)); }); });
  }
  grid.finish();
}

TEST(Tile_IsRightForEveryCollectiveMaskLaneSplitInPlaceAndIsa) { run_grid(kTile); }
TEST(Tile_LoadsEverySourceLineOnceAndStoresEveryDestinationLineOnce) { run_grid(kTileAudited); }
TEST(Tile_TouchesNoLineOutsideTheWindowsWithoutFlushesEither) { run_grid(kTileUnflushed); }
TEST(Tile_IsRightForEveryCollectiveMaskInPlaceAndIsaOnGeneralShapes) { run_grid(kTileGeneral); }
TEST(Tile_OnGeneralShapesStaysInsideTheWindows) { run_grid(kTileGeneralAudited); }
TEST(OtherTechniques_AreRightForEveryCollectiveMaskLaneSplitAndInPlaceAndAuditedOnTheirHostPasses) { run_grid(kOthers); }
TEST(Conventional_IsRightForEveryCollectiveMaskAndInPlaceOnGeneralShapes) { run_grid(kConventionalGeneral); }
TEST(RingAndTree_AreRightForEveryMaskLaneSplitAndInPlaceAndStayInTheirWindows) { run_grid(kRingAndTree); }

// The cases that the grids above run, counted, on machines with two ISAs (scalar and audit) to all.
TEST(Grids_MeetEveryKindThreadCountIsaAndPolicyWithEveryTechniqueAndAuditEveryHostPass) {
  const std::vector<Element> kinds = elements();
  const std::size_t policies = std::set<int>(kBothPolicies.begin(), kBothPolicies.end()).size();
  std::vector<int> all_isas;
#define ISA_ROW(ENUM, code, ...) all_isas.push_back(code);
  PIDCOMM_ISAS(ISA_ROW)
#undef ISA_ROW
  const auto reduces = [](int collective) {
    return collective == PIDCOMM_REDUCE_SCATTER || collective == PIDCOMM_ALLREDUCE || collective == PIDCOMM_REDUCE;
  };
  using Row = std::vector<int>;
  for (std::size_t count = 2; count <= all_isas.size(); ++count) {
    const std::vector<int> isas(all_isas.begin(), all_isas.begin() + static_cast<std::ptrdiff_t>(count));
    std::map<std::pair<std::string, Row>, std::set<Row>> met;  // what (and with which technique, which collective) -> levels met
    std::set<std::tuple<Axes, std::string, int, int>> ran, audited;
    for (const Cases *cases : kAllCases) {
      Turns turns;
      for (const Axes &axis_len : cases->shapes)
        each_case(*cases, axis_len, isas, turns, [&](const Case &c) {
          const verify::Problem &p = c.problem;
          const pidcomm_options &o = c.options;
          ran.insert({p.axis_len, p.mask, p.collective, o.technique});
          if (o.isa == PIDCOMM_ISA_AUDIT) audited.insert({p.axis_len, p.mask, p.collective, o.technique});
          met[{"ISA x threads", {o.technique}}].insert({o.isa, o.threads});
          met[{"ISA x policy", {o.technique}}].insert({o.isa, o.coherence});
          met[{"type x threads", {o.technique, p.collective}}].insert({p.type, o.threads});
          if (!c.takes_op()) return;
          met[{"type x op", {o.technique, p.collective}}].insert({p.type, p.op});
          met[{"type x op x ISA", {o.technique}}].insert({p.type, p.op, o.isa == PIDCOMM_ISA_AUDIT ? isas[0] : o.isa});
        });
    }
    const auto check_met = [&](const std::string &what, const Row &with, std::size_t want) {
      const std::size_t got = met[{what, with}].size();
      if (got == want) return;
      machine::fail(std::string("with ") + pidcomm_technique_name(with[0]) +
                    (with.size() > 1 ? std::string(" ") + pidcomm_collective_name(with[1]) : "") + ", " + std::to_string(count) +
                    " ISAs: the grids meet " + std::to_string(got) + " of " + std::to_string(want) + " " + what);
    };
    std::set<int> types;
    for (const Element &kind : kinds) types.insert(kind.type);
    for (const Technique &technique : kTechniques) {
      for (int collective : kCollectives) {
        if (!technique.is_for(collective)) continue;
        check_met("type x threads", {technique.code, collective}, Turns::kThreads * types.size());
        if (reduces(collective)) check_met("type x op", {technique.code, collective}, kinds.size());
      }
      check_met("ISA x threads", {technique.code}, Turns::kThreads * count);
      check_met("ISA x policy", {technique.code}, policies * count);
      check_met("type x op x ISA", {technique.code}, (count - 1) * kinds.size());
    }
    const auto check_whole = [&](const Axes &axis_len, int technique) {
      for (const std::string &mask : machine::masks_of(axis_len.size()))
        for (int collective : kCollectives) {
          if (!technique_of(technique).is_for(collective)) continue;
          Case c = make_case(collective, axis_len, mask, 0, kinds[0], 0);
          c.options.technique = technique;
          if (!ran.contains({axis_len, mask, collective, technique})) machine::fail("the grids have no case of " + machine::describe(c));
          if (has_host_pass(technique, collective) && !audited.contains({axis_len, mask, collective, technique}))
            machine::fail("the grids audit no case of " + machine::describe(c));
        }
    };
    for (const Axes &axis_len : kFastShapes)
      for (const Technique &technique : kTechniques) check_whole(axis_len, technique.code);
    for (const Axes &axis_len : kGeneralShapes) check_whole(axis_len, PIDCOMM_TECHNIQUE_TILE);
  }
}

// ---- the paper's techniques ----------------------------------------------------------------------------------------------------------

TEST(Paper_LeavesTheHeapBaseAndNeedsItsScratch) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  DPU_OK_OR_FAIL(dpu_load(set.get(), PIDCOMM_TEST_PROGRAM, nullptr));
  const auto heap_base = [&] {
    struct dpu_symbol_t symbol;
    DPU_OK_OR_FAIL(dpu_get_symbol(dpu_get_program(dpu_from_set(cube.dpu(0))), DPU_MRAM_HEAP_POINTER_NAME, &symbol));
    return symbol.address;
  };
  const std::uint32_t before = heap_base();
  CHECK(before != 0x08000000u);
  Case c = make_case(PIDCOMM_ALLREDUCE, {8, 8}, "10", 640, {PIDCOMM_INT32, PIDCOMM_SUM}, 1);
  c.src = 64;
  c.dst = 4096;
  c.options.technique = PIDCOMM_TECHNIQUE_PR_IM;
  c.options.scratch_offset = 8192;
  for (int times = 0; times < 2; ++times) {
    const pidcomm_trace trace = machine::run_case(cube, c);
    CHECK_EQ(trace.pe_loads, times == 0 ? 1u : 0u);
    CHECK_EQ(heap_base(), before);
  }
  // A launch without loading the program again is a fault, and the next call says why; loading mends it.
  CHECK_EQ(dpu_launch(set.get(), DPU_SYNCHRONOUS), DPU_ERR_DPU_FAULT);
  std::vector<std::uint8_t> host(64);
  pidcomm_request request = {PIDCOMM_ALLREDUCE, "10", 640, 64, 4096, nullptr, 0, PIDCOMM_INT32, PIDCOMM_SUM};
  CHECK_EQ(pidcomm_run(cube.get(), &request, &c.options, nullptr), +PIDCOMM_ERR_DEVICE);
  CHECK(std::string(pidcomm_last_error()).find("load yours again") != std::string::npos);
  DPU_OK_OR_FAIL(dpu_load(set.get(), PIDCOMM_TEST_PROGRAM, nullptr));
  DPU_OK_OR_FAIL(dpu_launch(set.get(), DPU_SYNCHRONOUS));
  machine::run_case(cube, c);

  // What is refused, before anything moves or the program is replaced.
  DPU_OK_OR_FAIL(dpu_load(set.get(), PIDCOMM_TEST_PROGRAM, nullptr));
  const auto refuses = [&](int status, const char *word, std::size_t scratch, std::size_t bytes) {
    request.bytes = bytes;
    pidcomm_options options = c.options;
    options.scratch_offset = scratch;
    CHECK_EQ(pidcomm_run(cube.get(), &request, &options, nullptr), status);
    if (std::string(pidcomm_last_error()).find(word) == std::string::npos) machine::fail(pidcomm_last_error());
  };
  refuses(PIDCOMM_ERR_WINDOW, "scratch_offset", 0, 640);
  refuses(PIDCOMM_ERR_WINDOW, "source", 64 + 632, 640);
  refuses(PIDCOMM_ERR_WINDOW, "destination", 4096 - 632, 640);
  refuses(PIDCOMM_ERR_WINDOW, "multiple", 8196, 640);
  refuses(PIDCOMM_ERR_WINDOW, "past the", machine::kMramBytes - 632 - (before - 0x08000000u), 640);
  refuses(PIDCOMM_ERR_SIZE, "divisible by 8 * 8", 8192, 648);
  DPU_OK_OR_FAIL(dpu_launch(set.get(), DPU_SYNCHRONOUS));
}

TEST(Paper_RefusesShapesThatTheLanesCutWithARest) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {3, 8});
  const pidcomm_request request = {PIDCOMM_ALLTOALL, "01", 64, 0, 4096, nullptr, 0, PIDCOMM_INT32, 0};
  const pidcomm_options options = {PIDCOMM_TECHNIQUE_PR_IM_CM, 0, 0, 0, 8192};
  CHECK_EQ(pidcomm_run(cube.get(), &request, &options, nullptr), +PIDCOMM_ERR_OPTION);
  CHECK(std::string(pidcomm_last_error()).find("3x8") != std::string::npos);
}

// ---- from member to member -----------------------------------------------------------------------------------------------------------

TEST(RingAndTree_AreForAllreduceOnShapesWithALaneSplit) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8}), cut(set, {3, 8});
  for (int technique : {PIDCOMM_TECHNIQUE_RING, PIDCOMM_TECHNIQUE_TREE}) {
    pidcomm_options options = {technique, 0, 0, 0, 8192};
    const auto refuses = [&](const Hypercube &on, const pidcomm_request &request, int status, const std::vector<std::string> &words) {
      const Bytes before = on.read(0, 16384);
      CHECK_EQ(pidcomm_run(on.get(), &request, &options, nullptr), status);
      const std::string sentence = pidcomm_last_error();
      for (const std::string &word : words)
        if (sentence.find(word) == std::string::npos) machine::fail("no \"" + word + "\" in: " + sentence);
      CHECK(on.read(0, 16384) == before);
    };
    const std::string name = pidcomm_technique_name(technique);
    std::vector<std::uint8_t> host(64 * 64);
    for (int collective : kCollectives) {
      if (collective == PIDCOMM_ALLREDUCE) continue;
      refuses(cube, {collective, "10", 64, 0, 4096, host.data(), host.size(), PIDCOMM_INT32, PIDCOMM_SUM}, PIDCOMM_ERR_OPTION,
              {name, "is for allreduce", pidcomm_collective_name(collective)});
    }
    pidcomm_request request = {PIDCOMM_ALLREDUCE, "10", 72, 0, 4096, nullptr, 0, PIDCOMM_INT32, PIDCOMM_SUM};
    refuses(cut, request, PIDCOMM_ERR_OPTION, {name, "3x8"});
    if (technique == PIDCOMM_TECHNIQUE_TREE) continue;
    refuses(cube, request, PIDCOMM_ERR_SIZE, {name, "divisible by 8 * 8"});
    request.bytes = 64;
    options.scratch_offset = 0;
    refuses(cube, request, PIDCOMM_ERR_WINDOW, {name, "scratch_offset"});
    options.scratch_offset = 4096 + 56;
    refuses(cube, request, PIDCOMM_ERR_WINDOW, {"scratch", "destination"});
  }
}

// ---- pairwise cover: everything that might interact ----------------------------------------------------------------------------------

TEST(EveryPairOfTypeOperatorSizeShapePlaceThreadsAndOptions_IsRight) {
  struct Shape {
    Axes axis_len;
    std::string mask;
  };
  const std::vector<Shape> shapes = {
      {{8, 4}, "10"},         {{8, 4}, "01"},         {{8, 4}, "11"},  {{4, 8}, "01"}, {{2, 4, 4}, "101"}, {{2, 4, 4}, "010"},
      {{2, 2, 2, 4}, "1011"}, {{2, 2, 2, 4}, "0100"}, {{16, 3}, "10"}, {{4, 6}, "01"}, {{64}, "1"},        {{8, 5}, "00"},
      {{32, 4}, "10"},        {{3, 5}, "01"},         {{12, 4}, "11"}, {{6, 4}, "10"}, {{5, 3, 2}, "101"},
  };
  // Sizes: blocks of so many words, or (from 1000 on) as many blocks as make at least so many bytes per PE.
  const std::vector<std::size_t> sizes = {0, 1, 3, 8, 13, 63, 8200, 16384 + 24, 5 * 8192};
  // Places around the ends of runs (8 KiB) and of the larger steps of the address map.
  const std::vector<std::size_t> places = {0, 64, 8192 - 24, 16384 - 8, 32768 - 8 * 5, (1u << 21) - 16, (1u << 22) - 16, (1u << 25) - 8};
  const std::vector<int> threads = {1, 2, 3, 7};
  const std::vector<int> isas = machine::available_isas();
  const std::vector<Element> kinds = elements();
  enum Factor { kCollective, kElement, kShape, kSize, kSrc, kDst, kThreads, kIsa, kCoherence, kTechnique, kInPlace, kFill };
  const auto is_possible = [&](std::size_t f, std::size_t i, std::size_t g, std::size_t j) {
    if (f == kCollective && g == kTechnique) return kTechniques[j].is_for(kCollectives[i]);
    if (f == kCollective && g == kInPlace) return j == 0 || can_be_in_place(kCollectives[i]);
    if (f != kShape || g != kTechnique) return true;
    const int code = kTechniques[j].code;
    return code == PIDCOMM_TECHNIQUE_TILE || code == PIDCOMM_TECHNIQUE_CONVENTIONAL || machine::is_fast(shapes[i].axis_len);
  };
  const std::vector<std::vector<std::size_t>> rows =
      pairwise::table({std::size(kCollectives), kinds.size(), shapes.size(), sizes.size(), places.size(), places.size(), threads.size(),
                       isas.size(), 2, kTechniques.size(), 2, 2},
                      is_possible);

  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  Grid grid("pairwise");
  for (std::size_t shape = 0; shape < shapes.size(); ++shape) {
    const Axes &axis_len = shapes[shape].axis_len;
    const Hypercube cube(set, axis_len);
    const std::uint32_t group_pes = verify::groups_of(axis_len, shapes[shape].mask).group_pes;
    for (const std::vector<std::size_t> &row : rows) {
      if (row[kShape] != shape) continue;
      const int collective = kCollectives[row[kCollective]];
      std::size_t bytes = sizes[row[kSize]];
      if (bytes < 1000)
        bytes = bytes_for_blocks(collective, group_pes, 8 * bytes);
      else
        bytes = (bytes + 8 * group_pes - 1) / (8 * group_pes) * (8 * group_pes);
      Case c = make_case(collective, axis_len, shapes[shape].mask, bytes, kinds[row[kElement]], row[kSrc] * 8 + row[kDst]);
      if (c.takes_op() && row[kFill] == 1) c.fill = Fill::kSpecial;
      c.src = places[row[kSrc]];
      c.dst = row[kInPlace] ? c.src : (1u << 24) + places[row[kDst]];
      c.options = {.technique = 0,
                   .isa = isas[row[kIsa]],
                   .threads = threads[row[kThreads]],
                   .coherence = kBothPolicies[row[kCoherence]],
                   .scratch_offset = 0};
      use_technique(c, kTechniques[row[kTechnique]].code, (1u << 23) - 8 * (1 + row[kDst]));
      grid.run([&] { machine::run_case(cube, c); });
    }
  }
  grid.finish();
}

TEST(WindowsAtTheEndOfMramAndRightBehindEachOther_AreRight) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {4, 2, 4});
  for (int collective : kCollectives)
    for (std::size_t block_words : {1, 5}) {
      Case c = make_case(collective, cube.axis_len(), "101", bytes_for_blocks(collective, 16, 8 * block_words),
                         {PIDCOMM_UINT32, PIDCOMM_SUM}, block_words);
      const std::size_t in = verify::rows_before(c.problem).row_bytes, out = verify::rows_after(c.problem).row_bytes;
      c.src = machine::kMramBytes - in;
      c.dst = c.src - out;
      machine::run_case(cube, c);
      c.dst = machine::kMramBytes - out;
      c.src = c.dst - in;
      machine::run_case(cube, c);
      c.src = 0;
      c.dst = in;
      machine::run_case(cube, c);
    }
}

TEST(LargeBlocks_AreRightAcrossRunsAndThreads) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {4, 4, 4});
  Grid grid("large blocks");
  for (int collective : kCollectives)
    for (const char *mask : {"100", "010", "011"})
      for (bool is_in_place : {false, true}) {
        if (is_in_place && !can_be_in_place(collective)) continue;
        const std::uint32_t group_pes = verify::groups_of(cube.axis_len(), mask).group_pes;
        for (int technique : techniques_for(collective, cube.axis_len())) {
          Case c = make_case(collective, cube.axis_len(), mask, group_pes * (8192 + 8 * 7), {PIDCOMM_INT32, PIDCOMM_SUM}, 17);
          c.src = 16384 - 8;
          c.dst = is_in_place ? c.src : (1u << 22) - 8 * 1000;
          c.options.threads = 2;
          use_technique(c, technique, (1u << 23) + 8);
          grid.run([&] { machine::run_case(cube, c); });
        }
      }
  grid.finish();
}

TEST(NoBytes_AreANoOp) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 4});
  for (int collective : kCollectives)
    for (int technique : techniques_for(collective, cube.axis_len()))
      for (const char *mask : {"00", "10", "01", "11"}) {
        Case c = make_case(collective, cube.axis_len(), mask, 0, {PIDCOMM_INT32, PIDCOMM_SUM}, 1);
        c.src = c.dst = 4096;
        c.options.technique = technique;
        const pidcomm_trace trace = machine::run_case(cube, c);
        CHECK_EQ(trace.mram_bytes_read + trace.mram_bytes_written + trace.host_bytes_read + trace.host_bytes_written, 0u);
        CHECK_EQ(trace.pe_launches, 0u);
      }
}

// ---- the same bits everywhere ------------------------------------------------------------------------------------------------------

TEST(FloatReductions_HaveTheDocumentedOrderOnEveryIsaThreadCountAndPolicy) {
  Grid grid("float order");
  for (const Axes &axis_len : {Axes{8, 4}, Axes{4, 8}, Axes{2, 4, 4}, Axes{2, 2, 2, 4}, Axes{24}, Axes{4, 6}, Axes{8, 5}}) {
    machine::power_up(ranks_for(axis_len));
    const DpuSet set = DpuSet::of_ranks(ranks_for(axis_len));
    const Hypercube cube(set, axis_len);
    std::size_t turn = 0;
    for (const std::string &mask : machine::masks_of(axis_len.size()))
      for (int collective : {PIDCOMM_REDUCE_SCATTER, PIDCOMM_ALLREDUCE, PIDCOMM_REDUCE})
        for (int type : {PIDCOMM_FLOAT32, PIDCOMM_FLOAT64})
          for (int op : {PIDCOMM_SUM, PIDCOMM_PROD})
            for (int isa : machine::available_isas())
              for (int threads : {1, 2, 7}) {
                const std::uint32_t group_pes = verify::groups_of(axis_len, mask).group_pes;
                Case c = make_case(collective, axis_len, mask, bytes_for_blocks(collective, group_pes, 56), {type, op}, ++turn);
                c.fill = Fill::kRounding;
                place(c, 128, turn % 4 == 0 && can_be_in_place(collective));
                c.options = {PIDCOMM_TECHNIQUE_TILE, isa, threads, kBothPolicies[turn % 2], 0};
                grid.run([&] { machine::run_case(cube, c); });  // the oracle has the documented order, the comparison is bitwise
              }
  }
  grid.finish();
}

TEST(SpecialFloats_AreRightForEveryOperatorCollectiveTechniqueAndIsa) {
  Grid grid("special floats");
  const std::vector<int> isas = machine::available_isas();
  for (const Axes &axis_len : {Axes{8, 4}, Axes{2, 4, 4}, Axes{3, 5}}) {
    machine::power_up(1);
    const DpuSet set = DpuSet::of_ranks(1);
    const Hypercube cube(set, axis_len);
    std::uint64_t seed = 0;
    for (const std::string &mask : machine::masks_of(axis_len.size()))
      for (int collective : {PIDCOMM_REDUCE_SCATTER, PIDCOMM_ALLREDUCE, PIDCOMM_REDUCE})
        for (int type : {PIDCOMM_FLOAT32, PIDCOMM_FLOAT64})
          for (int op : {PIDCOMM_SUM, PIDCOMM_PROD, PIDCOMM_MIN, PIDCOMM_MAX})
            for (int technique : techniques_for(collective, axis_len)) {
              const std::vector<int> drawn = {isas[verify::mix(++seed) % isas.size()]};
              for (int isa : technique == PIDCOMM_TECHNIQUE_TILE ? isas : drawn) {
                const std::uint32_t group_pes = verify::groups_of(axis_len, mask).group_pes;
                Case c = make_case(collective, axis_len, mask, bytes_for_blocks(collective, group_pes, 104), {type, op}, ++seed);
                c.fill = Fill::kSpecial;
                c.options = {technique, isa, 2, PIDCOMM_COHERENCE_DEFAULT, 0};
                use_technique(c, technique, 1u << 20);
                place(c, 128, false);
                grid.run([&] { machine::run_case(cube, c); });
              }
            }
  }
  grid.finish();
}

TEST(DefaultOptions_ChooseTileAndTheBestIsaAndNoFlushesOnEmulatedDimms) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  Case c = make_case(PIDCOMM_ALLTOALL, cube.axis_len(), "10", 64, {PIDCOMM_INT32, PIDCOMM_SUM}, 1);
  place(c, 0, false);
  const pidcomm_trace trace = machine::run_case(cube, c);
  int best_isa = 0, best_level = 0;
#define ISA_ROW(ENUM, code, name, level)                        \
  if (level > best_level && pidcomm_isa_available(code) != 0) { \
    best_level = level;                                         \
    best_isa = code;                                            \
  }
  PIDCOMM_ISAS(ISA_ROW)
#undef ISA_ROW
  CHECK_EQ(trace.isa, best_isa);
  CHECK_EQ(trace.technique, +PIDCOMM_TECHNIQUE_TILE);
  CHECK_EQ(trace.coherence, machine::kDefaultCoherence);
  CHECK_EQ(trace.lines_loaded, 0u);  // counted by audit only
  CHECK(trace.seconds_total > 0);
  CHECK(trace.seconds_total >= trace.seconds_pass);
}

TEST(Tile_StagesNoMoreMemoryForMoreBytes) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  Grid grid("bytes staged");
  for (const Axes &axis_len : {Axes{8, 8}, Axes{4, 6}, Axes{3, 5}, Axes{12, 4}}) {
    const Hypercube cube(set, axis_len);
    const std::uint32_t group_pes = verify::groups_of(axis_len, "11").group_pes;
    for (int collective : kCollectives)
      grid.run([&] {
        std::set<std::uint64_t> bytes_staged;
        for (std::size_t blocks : {512, 1024, 2048}) {  // enough for both threads to have work
          Case c =
              make_case(collective, axis_len, "11", bytes_for_blocks(collective, group_pes, 8 * blocks), {PIDCOMM_INT32, PIDCOMM_SUM}, 1);
          place(c, 0, false);
          c.options.threads = 2;
          bytes_staged.insert(machine::run_case(cube, c).bytes_staged);
        }
        CHECK_EQ(bytes_staged.size(), 1u);
      });
  }
  grid.finish();
}

// ---- sets of every kind --------------------------------------------------------------------------------------------------------------

/// Where the PEs must be: whole EGs of the set in the order of ranks and banks; then, for a shape that ends in a partial EG, its PEs.
void check_pe_order(const Hypercube &cube, const std::vector<std::pair<std::uint32_t, std::uint32_t>> &egs) {
  for (std::size_t pe = 0; pe < cube.pes(); ++pe) {
    struct dpu_t *dpu = dpu_from_set(cube.dpu(pe));
    CHECK(dpu != nullptr);
    CHECK_EQ(dpu_get_slice_id(dpu), pe % 8);
    CHECK_EQ(dpu_get_member_id(dpu), egs[pe / 8].second);
    CHECK_EQ(dpu_get_rank_id(dpu_get_rank(dpu)), egs[pe / 8].first);
  }
}

/// All collectives on a shape, a few masks each, on whatever set is given.
void run_some(const DpuSet &set, const Axes &axis_len, Grid &grid) {
  const Hypercube cube(set, axis_len);
  std::uint64_t seed = 0;
  for (const std::string &mask : machine::masks_of(axis_len.size()))
    for (int collective : kCollectives)
      for (int technique : {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_TECHNIQUE_CONVENTIONAL}) {
        const std::uint32_t group_pes = verify::groups_of(axis_len, mask).group_pes;
        Case c = make_case(collective, axis_len, mask, bytes_for_blocks(collective, group_pes, 40), {PIDCOMM_INT64, PIDCOMM_SUM}, ++seed);
        place(c, 8192 - 64, false);
        c.options.technique = technique;
        grid.run([&] { machine::run_case(cube, c); });
      }
}

TEST(EgsWithADisabledLane_AreSkipped) {
  machine::power_up(2, {{0, 3, 2}, {0, 7, 2}, {1, 0, 0}, {1, 5, 7}});
  const DpuSet set = DpuSet::of_ranks(2);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> egs;
  for (std::uint32_t rank : {0u, 1u})
    for (std::uint32_t bank = 0; bank < 8; ++bank)
      if (!(rank == 0 && bank == 2) && !(rank == 1 && (bank == 0 || bank == 7))) egs.push_back({rank, bank});
  check_pe_order(Hypercube(set, {8, 13}), egs);
  Grid grid("disabled lanes");
  for (const Axes &axis_len : {Axes{8, 13}, Axes{4, 26}, Axes{2, 2, 2, 8}, Axes{10, 10}, Axes{104}}) run_some(set, axis_len, grid);
  grid.finish();
}

TEST(PartialLastEg_MayBeOneWithADisabledLaneBehindItsPes) {
  machine::power_up(1, {{0, 3, 2}});
  const DpuSet set = DpuSet::of_ranks(1);
  Grid grid("partial EG with a disabled lane");
  std::vector<std::pair<std::uint32_t, std::uint32_t>> egs;
  for (std::uint32_t bank : {0u, 1u, 3u, 4u, 5u, 6u, 7u, 2u}) egs.push_back({0, bank});
  check_pe_order(Hypercube(set, {59}), egs);  // 7 whole EGs and lanes 0 to 2 of bank 2
  for (const Axes &axis_len : {Axes{59}, Axes{29, 2}, Axes{19, 3}}) run_some(set, axis_len, grid);
  grid.finish();
}

TEST(SetsOfAnyNumberOfDpus_WorkWithTheirWholeEgs) {
  machine::power_up(2);
  Grid grid("dpu_alloc");
  const struct {
    std::uint32_t dpus;
    Axes axis_len;
  } rows[] = {{96, {8, 12}}, {96, {4, 2, 12}}, {72, {8, 9}}, {8, {2, 4}}, {16, {4, 4}},
              {20, {4, 5}},  {20, {20}},       {12, {3, 4}}, {4, {2, 2}}, {1, {1}}};
  for (const auto &row : rows) {
    const DpuSet set = DpuSet::of_dpus(row.dpus);
    run_some(set, row.axis_len, grid);
  }
  grid.finish();
}

TEST(PeOrder_IsBankThenChipAndNotTheOrderOfDpuForeach) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const Hypercube cube(set, {8, 16});
  std::vector<std::pair<std::uint32_t, std::uint32_t>> egs;
  for (std::uint32_t eg = 0; eg < 16; ++eg) egs.push_back({eg / 8, eg % 8});
  check_pe_order(cube, egs);

  // Number i is given to the i-th DPU of DPU_FOREACH, which is chip * 8 + bank; PE order is bank * 8 + chip.
  std::vector<std::uint64_t> numbers(128);
  struct dpu_set_t all = set.get(), dpu;
  std::uint32_t i;
  DPU_FOREACH(all, dpu, i) {
    numbers[i] = i;
    DPU_OK_OR_FAIL(dpu_prepare_xfer(dpu, &numbers[i]));
  }
  DPU_OK_OR_FAIL(dpu_push_xfer(all, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0, 8, DPU_XFER_DEFAULT));
  std::vector<std::uint64_t> rows(128);
  CHECK_EQ(pidcomm_read(cube.get(), 0, 8, rows.data()), +PIDCOMM_OK);
  for (std::uint64_t pe = 0; pe < 128; ++pe) CHECK_EQ(rows[pe], pe / 64 * 64 + pe % 8 * 8 + pe % 64 / 8);
  CHECK_EQ(rows[1], 8u);  // PE 1 is the second chip's DPU; the second DPU of DPU_FOREACH is the second bank's
}

TEST(WriteAndRead_AreRowsInPeOrderAndTouchNothingElse) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  for (const Axes &axis_len : {Axes{8, 10}, Axes{3, 5}, Axes{70}})
    for (std::size_t bytes : {0u, 8u, 8208u})
      for (std::size_t offset : {std::size_t{0}, std::size_t{8192 - 16}, machine::kMramBytes - bytes}) {
        const Hypercube cube(set, axis_len);
        machine::Picture mram;
        mram.cover(offset, bytes);
        mram.poison(cube, 7);
        mram.write(cube);
        Bytes rows(cube.pes() * bytes);
        if (bytes != 0) verify::fill_distinct(8, bytes, rows);
        CHECK_EQ(pidcomm_write(cube.get(), offset, bytes, rows.data()), +PIDCOMM_OK);
        mram.put(cube, offset, bytes, rows);
        CHECK_EQ(mram.read(cube).difference(cube, mram), "");
        Bytes read(rows.size());
        CHECK_EQ(pidcomm_read(cube.get(), offset, bytes, read.data()), +PIDCOMM_OK);
        CHECK(read == rows);
        CHECK_EQ(mram.read(cube).difference(cube, mram), "");
      }
}

TEST(CoordinatesGroupsAndMembers_AreThoseOfTheDefinition) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  for (const Axes &axis_len : {Axes{2, 3, 4}, Axes{8, 12}, Axes{5, 1, 7}, Axes{1}}) {
    const Hypercube cube(set, axis_len);
    CHECK_EQ(pidcomm_pes(cube.get()), pes_of(axis_len));
    for (std::uint32_t pe = 0; pe < cube.pes(); ++pe) {
      Axes coords(axis_len.size());
      CHECK_EQ(pidcomm_coords(cube.get(), pe, coords.data()), +PIDCOMM_OK);
      CHECK(coords == verify::coordinates(axis_len, pe));
    }
    for (const std::string &mask : machine::masks_of(axis_len.size())) {
      const verify::Groups want = verify::groups_of(axis_len, mask);
      std::uint32_t groups = 0, group_pes = 0;
      CHECK_EQ(pidcomm_groups(cube.get(), mask.c_str(), &groups, &group_pes), +PIDCOMM_OK);
      CHECK_EQ(groups, want.count);
      CHECK_EQ(group_pes, want.group_pes);
      for (std::uint32_t pe = 0; pe < cube.pes(); ++pe) {
        std::uint32_t group = 0, member = 0;
        CHECK_EQ(pidcomm_group_of(cube.get(), mask.c_str(), pe, &group), +PIDCOMM_OK);
        CHECK_EQ(pidcomm_member_of(cube.get(), mask.c_str(), pe, &member), +PIDCOMM_OK);
        CHECK_EQ(group, want.group[pe]);
        CHECK_EQ(member, want.member[pe]);
      }
    }
  }
}

// ---- every call of the same collective -------------------------------------------------------------------------------------------------

/// Calls the named function of the C API for a request; with `options`, its _ex form.
int call_by_name(hypercube_manager *m, const pidcomm_request &r, const pidcomm_options *options) {
  switch (r.collective) {
    case PIDCOMM_ALLTOALL:
      return options ? pidcomm_alltoall_ex(m, r.mask, r.bytes, r.src, r.dst, r.type, options)
                     : pidcomm_alltoall(m, r.mask, r.bytes, r.src, r.dst, r.type);
    case PIDCOMM_REDUCE_SCATTER:
      return options ? pidcomm_reduce_scatter_ex(m, r.mask, r.bytes, r.src, r.dst, r.type, r.op, options)
                     : pidcomm_reduce_scatter(m, r.mask, r.bytes, r.src, r.dst, r.type, r.op);
    case PIDCOMM_ALLREDUCE:
      return options ? pidcomm_allreduce_ex(m, r.mask, r.bytes, r.src, r.dst, r.type, r.op, options)
                     : pidcomm_allreduce(m, r.mask, r.bytes, r.src, r.dst, r.type, r.op);
    case PIDCOMM_ALLGATHER:
      return options ? pidcomm_allgather_ex(m, r.mask, r.bytes, r.src, r.dst, r.type, options)
                     : pidcomm_allgather(m, r.mask, r.bytes, r.src, r.dst, r.type);
    case PIDCOMM_SCATTER:
      return options ? pidcomm_scatter_ex(m, r.mask, r.bytes, r.host, r.host_bytes, r.dst, r.type, options)
                     : pidcomm_scatter(m, r.mask, r.bytes, r.host, r.host_bytes, r.dst, r.type);
    case PIDCOMM_GATHER:
      return options ? pidcomm_gather_ex(m, r.mask, r.bytes, r.src, r.host, r.host_bytes, r.type, options)
                     : pidcomm_gather(m, r.mask, r.bytes, r.src, r.host, r.host_bytes, r.type);
    case PIDCOMM_REDUCE:
      return options ? pidcomm_reduce_ex(m, r.mask, r.bytes, r.src, r.host, r.host_bytes, r.type, r.op, options)
                     : pidcomm_reduce(m, r.mask, r.bytes, r.src, r.host, r.host_bytes, r.type, r.op);
    default:
      return options ? pidcomm_broadcast_ex(m, r.mask, r.bytes, r.host, r.host_bytes, r.dst, r.type, options)
                     : pidcomm_broadcast(m, r.mask, r.bytes, r.host, r.host_bytes, r.dst, r.type);
  }
}

TEST(NamedFunctionsAndTheirExForms_AreTheRequestsTheyName) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 4});
  const pidcomm_options scalar = {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_ISA_SCALAR, 1, PIDCOMM_COHERENCE_HARDWARE, 0};
  for (int collective : kCollectives)
    for (const pidcomm_options *options : {static_cast<const pidcomm_options *>(nullptr), &scalar}) {
      Case c = make_case(collective, cube.axis_len(), "01", bytes_for_blocks(collective, 4, 24), {PIDCOMM_INT16, PIDCOMM_MAX}, 5);
      place(c, 256, false);
      const verify::Rows in = verify::rows_before(c.problem), out = verify::rows_after(c.problem);
      Bytes before(in.bytes()), host(in.at_pes ? (out.at_pes ? 0 : out.bytes()) : in.bytes());
      verify::fill_distinct(6, in.row_bytes, before);
      machine::Picture mram;
      mram.cover(c.src, 4096);
      mram.poison(cube, 1);
      if (in.at_pes)
        mram.put(cube, c.src, in.row_bytes, before);
      else
        host = before;
      mram.write(cube);
      const pidcomm_request request = {collective,  c.problem.mask.c_str(), c.problem.bytes, c.src, c.dst, host.data(),
                                       host.size(), c.problem.type,         c.problem.op};
      CHECK_EQ(call_by_name(cube.get(), request, options), +PIDCOMM_OK);
      const Bytes want = verify::expected(c.problem, before);
      if (out.at_pes) mram.put(cube, c.dst, out.row_bytes, want);
      CHECK_EQ(mram.read(cube).difference(cube, mram), "");
      CHECK(host == (out.at_pes ? (in.at_pes ? Bytes{} : before) : want));
    }
}

TEST(Names_AreThoseOfTheTables) {
#define CHECK_NAME(function, code, name) CHECK_EQ(std::string(function(code)), name);
#define COLLECTIVE_ROW(ENUM, code, name, ...) CHECK_NAME(pidcomm_collective_name, code, #name)
#define TYPE_ROW(ENUM, code, name, ...) CHECK_NAME(pidcomm_type_name, code, #name)
#define OP_ROW(ENUM, code, name, ...) CHECK_NAME(pidcomm_op_name, code, name)
#define TECHNIQUE_ROW(ENUM, code, name, ...) CHECK_NAME(pidcomm_technique_name, code, name)
#define ISA_ROW(ENUM, code, name, ...) CHECK_NAME(pidcomm_isa_name, code, name)
#define COHERENCE_ROW(ENUM, code, name) CHECK_NAME(pidcomm_coherence_name, code, name)
  PIDCOMM_COLLECTIVES(COLLECTIVE_ROW)
  PIDCOMM_TYPES(TYPE_ROW)
  PIDCOMM_OPS(OP_ROW)
  PIDCOMM_TECHNIQUES(TECHNIQUE_ROW)
  PIDCOMM_ISAS(ISA_ROW)
  PIDCOMM_COHERENCES(COHERENCE_ROW)
#undef CHECK_NAME
#undef COLLECTIVE_ROW
#undef TYPE_ROW
#undef OP_ROW
#undef TECHNIQUE_ROW
#undef ISA_ROW
#undef COHERENCE_ROW
  std::set<std::string> statuses;
#define STATUS_ROW(ENUM, code, ...)            \
  CHECK(pidcomm_status_name(code) != nullptr); \
  CHECK(statuses.insert(pidcomm_status_name(code)).second);
  PIDCOMM_STATUSES(STATUS_ROW)
#undef STATUS_ROW
  for (int unknown : {-1, 99, 1 << 30}) {
    CHECK(pidcomm_status_name(unknown) == nullptr);
    CHECK(pidcomm_collective_name(unknown) == nullptr);
    CHECK(pidcomm_type_name(unknown) == nullptr);
    CHECK(pidcomm_op_name(unknown) == nullptr);
    CHECK(pidcomm_technique_name(unknown) == nullptr);
    CHECK(pidcomm_isa_name(unknown) == nullptr);
    CHECK(pidcomm_coherence_name(unknown) == nullptr);
    CHECK_EQ(pidcomm_isa_available(unknown), 0);
  }
  CHECK_EQ(pidcomm_isa_available(PIDCOMM_ISA_SCALAR), 1);
  CHECK_EQ(pidcomm_isa_available(PIDCOMM_ISA_AUDIT), 1);
  CHECK_EQ(std::string(pidcomm_version()), std::to_string(PIDCOMM_VERSION_MAJOR) + "." + std::to_string(PIDCOMM_VERSION_MINOR) + "." +
                                               std::to_string(PIDCOMM_VERSION_PATCH));
}

// ---- at the same time ----------------------------------------------------------------------------------------------------------------

/// Runs `body(i)` in `count` threads at once; the first failure is the test's.
template <class Body>
void in_threads(int count, const Body &body) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(count));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i)
      threads.emplace_back([&body, &errors, i] {
        try {
          body(i);
        } catch (...) {
          errors[static_cast<std::size_t>(i)] = std::current_exception();
        }
      });
  }
  for (const std::exception_ptr &error : errors)
    if (error) std::rethrow_exception(error);
}

TEST(ManagersOfDifferentSets_RunInParallel) {
  machine::power_up(2);
  const DpuSet sets[] = {DpuSet::of_ranks(1), DpuSet::of_ranks(1)};
  const Hypercube cubes[] = {{sets[0], {8, 8}}, {sets[1], {5, 7}}};
  in_threads(2, [&](int i) {
    std::uint64_t seed = 100u * static_cast<unsigned>(i);
    for (int round = 0; round < (effort::is_small() ? 1 : 8); ++round)
      for (int collective : kCollectives)
        for (const char *mask : {"10", "01", "11"}) {
          const std::uint32_t group_pes = verify::groups_of(cubes[i].axis_len(), mask).group_pes;
          Case c = make_case(collective, cubes[i].axis_len(), mask, bytes_for_blocks(collective, group_pes, 72),
                             {PIDCOMM_INT32, PIDCOMM_SUM}, ++seed);
          place(c, 64, false);
          c.options.threads = 1 + round % 2;
          machine::run_case(cubes[i], c);
        }
  });
}

TEST(CallsOnOneManager_AreSerialised) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  const verify::Problem problem{PIDCOMM_ALLTOALL, {8, 8}, "01", 8 * 1024, PIDCOMM_INT32, 0};
  Bytes before(verify::rows_before(problem).bytes());
  verify::fill_distinct(1, problem.bytes, before);
  constexpr std::size_t kStep = 1 << 16;
  for (std::size_t i = 0; i < 4; ++i) cube.write(i * kStep, problem.bytes, before);
  in_threads(4, [&](int i) {
    const std::size_t src = static_cast<std::size_t>(i) * kStep;
    for (int round = 0; round < 20; ++round)
      CHECK_EQ(pidcomm_alltoall(cube.get(), "01", problem.bytes, src, src + kStep / 2, PIDCOMM_INT32), +PIDCOMM_OK);
  });
  for (std::size_t i = 0; i < 4; ++i) CHECK_EQ(verify::check(problem, before, cube.read(i * kStep + kStep / 2, problem.bytes)).first, "");
}

#ifndef __SANITIZE_THREAD__  // which does not support threads in a child of a process that has some
TEST(ChildOfFork_CanRunACollective) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  constexpr std::size_t kBytes = 8 * 1024, kDst = 1 << 16;
  Bytes before(cube.rows() * kBytes);
  verify::fill_distinct(3, kBytes, before);
  cube.write(0, kBytes, before);
  const pidcomm_options options = {0, 0, 4, 0, 0};
  const auto result = [&](std::size_t dst) {
    Bytes rows(before.size());
    CHECK_EQ(pidcomm_alltoall_ex(cube.get(), "10", kBytes, 0, dst, PIDCOMM_INT32, &options), +PIDCOMM_OK);
    CHECK_EQ(pidcomm_read(cube.get(), dst, kBytes, rows.data()), +PIDCOMM_OK);
    return rows;
  };
  const Bytes of_parent = result(kDst);
  const pid_t child = fork();
  if (child == 0) {
    bool is_same = false;
    try {
      is_same = result(2 * kDst) == of_parent;
    } catch (...) {
    }
    _exit(is_same ? 0 : 1);
  }
  CHECK(child > 0);
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), 0);
  CHECK(result(3 * kDst) == of_parent);
}
#endif

TEST(Collective_WaitsForEarlierAsynchronousTransfersOfItsRanks) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  const verify::Problem problem{PIDCOMM_ALLTOALL, {8, 8}, "10", std::size_t{8} * (effort::is_small() ? 1024 : 16384), PIDCOMM_INT32, 0};
  Bytes before(verify::rows_before(problem).bytes());
  verify::fill_distinct(2, problem.bytes, before);
  for (std::size_t pe = 0; pe < 64; ++pe) DPU_OK_OR_FAIL(dpu_prepare_xfer(cube.dpu(pe), &before[pe * problem.bytes]));
  DPU_OK_OR_FAIL(dpu_push_xfer(set.get(), DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0, problem.bytes, DPU_XFER_ASYNC));
  CHECK_EQ(pidcomm_alltoall(cube.get(), "10", problem.bytes, 0, 1 << 20, PIDCOMM_INT32), +PIDCOMM_OK);
  CHECK_EQ(verify::check(problem, before, cube.read(1 << 20, problem.bytes)).first, "");
}

TEST(Collective_WaitsForRunningPesOfItsRanks) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 8});
  const verify::Problem problem{PIDCOMM_ALLREDUCE, {8, 8}, "11", 256, PIDCOMM_INT32, PIDCOMM_SUM};
  Bytes before(verify::rows_before(problem).bytes());
  verify::fill_distinct(2, problem.bytes, before);
  cube.write(0, problem.bytes, before);
  DPU_OK_OR_FAIL(dpuemu_begin_run(set.rank(0)));
  std::atomic<bool> has_ended{false};
  {
    const std::jthread ends_the_run([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      has_ended = true;
      dpuemu_end_run(set.rank(0), false, 0);
    });
    CHECK_EQ(pidcomm_allreduce(cube.get(), "11", problem.bytes, 0, 4096, PIDCOMM_INT32, PIDCOMM_SUM), +PIDCOMM_OK);
    CHECK(has_ended);
  }
  CHECK_EQ(verify::check(problem, before, cube.read(4096, problem.bytes)).first, "");
}

TEST(HypercubesOfOneSet_MayCoexistAndBeMadeAgain) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  Grid grid("hypercubes of one set");
  for (int round = 0; round < 3; ++round) {
    const Hypercube large(set, {8, 8});
    run_some(set, {4, 4}, grid);
    Case c = make_case(PIDCOMM_ALLTOALL, {8, 8}, "10", 64, {PIDCOMM_INT32, PIDCOMM_SUM}, 1);
    place(c, 0, false);
    machine::run_case(large, c);
  }
  grid.finish();
  CHECK_EQ(pidcomm_pes(nullptr), 0u);
  pidcomm_hypercube_destroy(nullptr);
}

// ---- plans and limits ------------------------------------------------------------------------------------------------------------------

std::string plan_json(const Axes &axis_len, const pidcomm_request &request, int expand) {
  std::size_t length = 0;
  const auto axes = static_cast<std::uint32_t>(axis_len.size());
  CHECK_EQ(pidcomm_plan_json(axes, axis_len.data(), &request, nullptr, expand, nullptr, 0, &length), +PIDCOMM_OK);
  CHECK(length > 2);
  std::string json(length + 1, '#');
  std::size_t again = 0;
  CHECK_EQ(pidcomm_plan_json(axes, axis_len.data(), &request, nullptr, expand, json.data(), json.size(), &again), +PIDCOMM_OK);
  CHECK_EQ(again, length);
  CHECK_EQ(std::strlen(json.c_str()), length);
  json.resize(length);
  return json;
}

/// Are brackets and quotes balanced, outside and inside strings? (The Python tests parse it.)
bool is_balanced(const std::string &json) {
  std::string open;
  bool is_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (is_string) {
      if (c == '\\')
        ++i;
      else
        is_string = c != '"';
    } else if (c == '"') {
      is_string = true;
    } else if (c == '{' || c == '[') {
      open += c;
    } else if (c == '}' || c == ']') {
      if (open.empty() || open.back() != (c == '}' ? '{' : '[')) return false;
      open.pop_back();
    }
  }
  return open.empty() && !is_string;
}

TEST(PlanJson_DescribesEveryRequestWithoutADevice) {
  for (const Axes &axis_len : {Axes{8, 4}, Axes{2, 4, 4}, Axes{3, 5}, Axes{16, 3}, Axes{32, 32}})
    for (const std::string &mask : machine::masks_of(axis_len.size()))
      for (int collective : kCollectives)
        for (int expand : {0, 1}) {
          const std::uint32_t group_pes = verify::groups_of(axis_len, mask).group_pes;
          if (expand && group_pes > 64) continue;
          pidcomm_request request{};
          request.collective = collective;
          request.mask = mask.c_str();
          request.bytes = bytes_for_blocks(collective, group_pes, 16);
          request.dst = 1 << 20;
          request.type = PIDCOMM_INT32;
          const std::string json = plan_json(axis_len, request, expand);
          CHECK_EQ(json.front(), '{');
          CHECK_EQ(json.back(), '}');
          CHECK(is_balanced(json));
          CHECK(json.find(std::string("\"") + pidcomm_collective_name(collective) + "\"") != std::string::npos);
          CHECK(json.find("\"tile\"") != std::string::npos);
          // The general path says that it is one; its work is not a list of tiles.
          CHECK_EQ(json.find("\"general\"") == std::string::npos, machine::is_fast(axis_len));
          if (expand && machine::is_fast(axis_len)) CHECK(json.size() > plan_json(axis_len, request, 0).size());
        }
}

TEST(PlanJson_WritesNoMoreThanTheCapacity) {
  const Axes axis_len = {8, 4};
  pidcomm_request request{};
  request.collective = PIDCOMM_ALLTOALL;
  request.mask = "10";
  request.bytes = 64;
  request.dst = 4096;
  request.type = PIDCOMM_INT32;
  const std::string whole = plan_json(axis_len, request, 0);
  for (std::size_t capacity : {std::size_t{1}, std::size_t{2}, whole.size() / 2, whole.size(), whole.size() + 1, whole.size() + 9}) {
    std::string json(whole.size() + 16, '#');
    std::size_t length = 0;
    CHECK_EQ(pidcomm_plan_json(2, axis_len.data(), &request, nullptr, 0, json.data(), capacity, &length), +PIDCOMM_OK);
    CHECK_EQ(length, whole.size());
    const std::size_t kept = std::min(capacity - 1, whole.size());
    CHECK_EQ(json.substr(0, kept), whole.substr(0, kept));
    CHECK_EQ(json[kept], '\0');
    CHECK_EQ(json.substr(kept + 1), std::string(json.size() - kept - 1, '#'));
  }
}

TEST(PlanJson_HasASizeThatDoesNotGrowWithBytes) {
  const Axes axis_len = {32, 32};
  pidcomm_request request{};
  request.collective = PIDCOMM_ALLTOALL;
  request.mask = "10";
  request.type = PIDCOMM_INT32;
  request.dst = 32 << 20;
  request.bytes = 32 * 8;
  const std::size_t small = plan_json(axis_len, request, 0).size();
  request.bytes = 32 * 8 * 4096;
  CHECK(plan_json(axis_len, request, 0).size() < small + 200);  // numbers have more digits
  CHECK(small < 16384);
}

TEST(StreamLimit_CopiesEveryWordOrStoresZerosAndSaysHowManyBytesItMoved) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {60});  // 7 whole entangled groups, and one with 4 PEs that the limit leaves alone
  constexpr std::size_t kSrc = 8192 - 24, kDst = (1 << 20) + 40, kBytes = 3 * 8192 + 8, kGuard = 64;
  Bytes input(60 * kBytes), guarded(60 * (kBytes + 2 * kGuard)), output(guarded.size());
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::uint8_t>(verify::mix(i));
  for (std::size_t i = 0; i < guarded.size(); ++i) guarded[i] = static_cast<std::uint8_t>(verify::mix(~i));
#define PIDCOMM_ROW(ENUM, ...) PIDCOMM_COPY_ORDER_##ENUM,
  constexpr int kAllCopyOrders[] = {PIDCOMM_COPY_ORDERS(PIDCOMM_ROW)};
#undef PIDCOMM_ROW
  double seconds = 0;
  std::uint64_t bytes_moved = 0;
  CHECK_EQ(pidcomm_stream_limit(cube.get(), 0, 64, 64, 0, 64, nullptr, &seconds, &bytes_moved), +PIDCOMM_ERR_OPTION);
  for (int coherence : kBothPolicies) {
    for (int threads : {1, 2, 7}) {
      for (std::size_t bytes_read : {kBytes, kBytes / 16 * 8, std::size_t{0}})
        for (int copy_order : kAllCopyOrders) {
          CHECK_EQ(pidcomm_write(cube.get(), kSrc, kBytes, input.data()), +PIDCOMM_OK);
          CHECK_EQ(pidcomm_write(cube.get(), kDst - kGuard, kBytes + 2 * kGuard, guarded.data()), +PIDCOMM_OK);
          const pidcomm_options options = {0, 0, threads, coherence, 0};
          CHECK_EQ(pidcomm_stream_limit(cube.get(), copy_order, bytes_read, kBytes, kSrc, kDst, &options, &seconds, &bytes_moved),
                   +PIDCOMM_OK);
          CHECK(seconds > 0);
          CHECK_EQ(bytes_moved, 56u * (bytes_read + kBytes));
          CHECK_EQ(pidcomm_read(cube.get(), kDst - kGuard, kBytes + 2 * kGuard, output.data()), +PIDCOMM_OK);
          for (std::size_t pe = 0; pe < 60; ++pe) {
            const std::size_t row = pe * (kBytes + 2 * kGuard);
            for (std::size_t i = 0; i < kBytes + 2 * kGuard; ++i) {
              const bool is_inside = i >= kGuard && i < kGuard + kBytes && pe < 56;
              const std::uint8_t want = !is_inside ? guarded[row + i] : bytes_read == kBytes ? input[pe * kBytes + i - kGuard] : 0;
              if (output[row + i] != want) machine::fail("PE " + std::to_string(pe) + " byte " + std::to_string(i));
            }
          }
        }
    }
  }
}

}  // namespace
