// The eight collectives through the C API on emulated DIMMs, compared with the oracle: exhaustive
// grids.
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "collective_cases.h"
#include "tuned_passes.h"

namespace {

using namespace collective_cases;
using tuned_passes::ReductionsPrefetch;

// ---- exhaustive grids: technique x collective x mask x lane split x in place x size
// --------------------------------------------------

/// The ISAs that run a case: each except audit; audit; the best; or one, which is audit for one of
/// the sizes.
enum class Isas { kEach, kAudit, kBest, kOne };

/// Every collective of the techniques, with every mask on every shape, in place or not. Types,
/// operators and threads take turns.
struct Cases {
  const char *name;
  std::vector<Axes> shapes;
  std::vector<std::size_t> blocks_bytes;
  std::vector<int> techniques;
  Isas isas;
  std::vector<int> coherences;
};

const Cases kTile = {"tile, fast shapes",      kFastShapes, {8, 24, 104},
                     {PIDCOMM_TECHNIQUE_TILE}, Isas::kEach, kBothPolicies};
const Cases kTileAudited = {"tile, audit", kFastShapes,
                            {8, 24, 104},  {PIDCOMM_TECHNIQUE_TILE},
                            Isas::kAudit,  {PIDCOMM_COHERENCE_HARDWARE}};
const Cases kTileUnflushed = {"tile, audit, no flushes",
                              {{8, 4}, {4, 6}, {2, 4, 4}},
                              {8, 24, 104},
                              {PIDCOMM_TECHNIQUE_TILE},
                              Isas::kAudit,
                              {machine::kDefaultCoherence}};
const Cases kTileGeneral = {"tile, general shapes",   kGeneralShapes, {8, 24, 104},
                            {PIDCOMM_TECHNIQUE_TILE}, Isas::kEach,    kBothPolicies};
const Cases kTileGeneralAudited = {
    "tile, general shapes, audit", kGeneralShapes, {24},
    {PIDCOMM_TECHNIQUE_TILE},      Isas::kAudit,   {PIDCOMM_COHERENCE_HARDWARE}};
// Sections whose lines do not fit into the buffer at once, and sections that are cut into parts.
const Cases kTileParts = {"tile, sections in parts",
                          {{63, 8}, {61, 9}, {7, 37}},
                          {8, 152},
                          {PIDCOMM_TECHNIQUE_TILE},
                          Isas::kAudit,
                          {machine::kDefaultCoherence}};
// Blocks that threads share. The share of a thread does not depend on the ISA.
const Cases kTileThreads = {"tile, threads share sections",
                            {{10, 10}, {12, 16}, {31, 8}},
                            {5000},
                            {PIDCOMM_TECHNIQUE_TILE},
                            Isas::kBest,
                            {machine::kDefaultCoherence}};
const Cases kOthers = {"the other techniques",
                       kFastShapes,
                       {8, 104, 1160},
                       techniques_without({PIDCOMM_TECHNIQUE_TILE}),
                       Isas::kOne,
                       kBothPolicies};
// Blocks that take most of the time of their grid.
const Cases kOthersLong = {
    "the other techniques, long blocks",          {{8, 4}, {2, 2, 6}}, {1160, 4104},
    techniques_without({PIDCOMM_TECHNIQUE_TILE}), Isas::kOne,          kBothPolicies};
// Slots of several pieces of the host's work.
const Cases kSdkPieces = {"slots of several pieces",
                          {{8, 2}, {2, 8}},
                          {16392},
                          {PIDCOMM_TECHNIQUE_PR, PIDCOMM_TECHNIQUE_BASELINE},
                          Isas::kOne,
                          kBothPolicies};
const Cases kSdkGeneral = {"conventional and baseline, general shapes",
                           {{3, 5}, {12, 4}, {10, 10}},
                           {8, 24, 104},
                           {PIDCOMM_TECHNIQUE_CONVENTIONAL, PIDCOMM_TECHNIQUE_BASELINE},
                           Isas::kOne,
                           kBothPolicies};
// Members in entangled groups along two axes, in numbers that are not powers of two, and in
// adjacent entangled groups.
const Cases kRingAndTree = {"ring and tree",
                            {{16, 3, 5}, {8, 3, 2, 5}, {2, 8, 7}, {4, 2, 16, 3}, {8, 11}, {128}},
                            {0, 8, 24, 104, 1160},
                            {PIDCOMM_TECHNIQUE_RING, PIDCOMM_TECHNIQUE_TREE},
                            Isas::kOne,
                            kBothPolicies};
const Cases *const kAllCases[] = {
    &kTile,      &kTileAudited, &kTileUnflushed, &kTileGeneral, &kTileGeneralAudited,
    &kTileParts, &kTileThreads, &kOthers,        &kOthersLong,  &kSdkGeneral,
    &kSdkPieces, &kRingAndTree};

/// Returns all shapes of 1 to 3 axes with lengths 1 to 13 and at most 512 PEs, or a sample of these
/// shapes.
std::vector<Axes> short_shapes() {
  std::vector<Axes> shapes;
  std::uint64_t number = 0;
  const auto add = [&](const Axes &axis_len) {
    std::uint32_t pes = 1;
    for (std::uint32_t length : axis_len) pes *= length;
    if (pes <= 512 && (verify::mix(number++) % 64 == 0 || effort::is_full()))
      shapes.push_back(axis_len);
  };
  constexpr std::uint32_t kLongest = 13;
  for (std::uint32_t x = 1; x <= kLongest; ++x) {
    add({x});
    for (std::uint32_t y = 1; y <= kLongest; ++y) {
      add({x, y});
      for (std::uint32_t z = 1; z <= kLongest; ++z) add({x, y, z});
    }
  }
  return shapes;
}

/// Chooses element, ISA, threads and policy in turn, separately for each technique, collective and
/// list of ISAs.
class RoundRobin {
 public:
  static constexpr std::size_t kThreads = 3;
  struct Choice {
    Element kind;
    int isa, threads, coherence;
  };
  /// Each lap over the kinds starts one kind later and shifts ISA, threads and policy by one, so
  /// every lap combines a kind with other values. Within a lap the three change at different paces,
  /// so all their pairs occur.
  Choice next(int technique, int collective, const std::vector<int> &isas,
              const std::vector<int> &coherences) {
    const Key key = {technique, collective, isas.front()};
    const std::size_t turn = turns_.try_emplace(key, turns_.size() * kinds_.size()).first->second++;
    const std::size_t lap = turn / kinds_.size(), kind = (turn + lap) % kinds_.size();
    return {kinds_[kind], isas[(kind + lap) % isas.size()],
            static_cast<int>(1 + (kind / 3 + lap) % kThreads),
            coherences[(kind / 9 + lap) % coherences.size()]};
  }
  std::uint64_t next_number() { return ++number_; }

 private:
  using Key = std::tuple<int, int, int>;
  std::vector<Element> kinds_ = elements();
  std::map<Key, std::size_t> turns_;
  std::uint64_t number_ = 0;
};

/// Calls visit(case) for every case on a shape, on a machine that has these ISAs.
template <class Visit>
void each_case(const Cases &cases, const Axes &axis_len, const std::vector<int> &isas,
               RoundRobin &round_robin, const Visit &visit) {
  std::vector<int> not_audit = isas;
  std::erase(not_audit, PIDCOMM_ISA_AUDIT);
  std::vector<std::vector<int>> each;
  for (int isa : not_audit) each.push_back({isa});
  const std::vector<std::vector<int>> audit = {{PIDCOMM_ISA_AUDIT}}, best = {{not_audit.back()}},
                                      one = {not_audit};

  const auto visit_one = [&](int collective, const std::string &mask, bool is_in_place,
                             std::size_t block_bytes, int technique, const std::vector<int> &list) {
    const RoundRobin::Choice choice =
        round_robin.next(technique, collective, list, cases.coherences);
    const std::uint64_t seed = round_robin.next_number(), place_of = verify::mix(seed) % 18;
    // PEs cut some blocks into 8: the parts have the size of other blocks.
    const bool is_cut =
        is_cut_by_lanes(collective) && reorders(technique, collective, axis_len, mask);
    const std::size_t bytes =
        bytes_for_blocks(collective, verify::groups_of(axis_len, mask).group_pes,
                         is_cut ? 8 * block_bytes : block_bytes);
    Case c = make_case(collective, axis_len, mask, bytes, choice.kind, seed);
    c.options = {sizeof(pidcomm_options), technique,        choice.isa,
                 choice.threads,          choice.coherence, 0};
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
          const std::size_t audited_size =
              verify::mix(round_robin.next_number()) % cases.blocks_bytes.size();
          for (std::size_t size = 0; size < cases.blocks_bytes.size(); ++size) {
            const bool is_audited =
                cases.isas == Isas::kAudit || (cases.isas == Isas::kOne && size == audited_size);
            for (const std::vector<int> &list : is_audited                  ? audit
                                                : cases.isas == Isas::kEach ? each
                                                : cases.isas == Isas::kBest ? best
                                                                            : one)
              visit_one(collective, mask, is_in_place, cases.blocks_bytes[size], technique, list);
          }
        }
      }
}

void run_grid(const Cases &cases) {
  Grid grid(cases.name);
  const std::vector<int> isas = machine::available_isas();
  RoundRobin round_robin;
  for (const Axes &axis_len : cases.shapes) {
    machine::power_up(ranks_for(axis_len));
    const DpuSet set = DpuSet::of_ranks(ranks_for(axis_len));
    const Hypercube cube(set, axis_len);
    each_case(cases, axis_len, isas, round_robin, [&](const Case &c) {
      grid.run([&] {
        const pidcomm_trace trace = machine::run_case(cube, c);
        check_claims(c, trace, machine::audit_of(cube));
      });
    });
  }
  grid.finish();
}

TEST(Tile_IsRightForEveryCollectiveMaskLaneSplitInPlaceAndIsa) { run_grid(kTile); }
TEST(Tile_LoadsEverySourceLineOnceAndStoresEveryDestinationLineOnce) { run_grid(kTileAudited); }
TEST(Tile_WithoutFlushesTouchesNoLineOutsideTheWindows) { run_grid(kTileUnflushed); }
TEST(Tile_IsRightForEveryCollectiveMaskInPlaceAndIsaOnGeneralShapes) { run_grid(kTileGeneral); }
TEST(Tile_OnGeneralShapesStaysInsideTheWindows) { run_grid(kTileGeneralAudited); }
TEST(Tile_IsRightIfASectionHasSeveralParts) { run_grid(kTileParts); }

pidcomm_options audited_by_one_thread() {
  return {sizeof(pidcomm_options),    PIDCOMM_TECHNIQUE_TILE,
          PIDCOMM_ISA_AUDIT,          1,
          machine::kDefaultCoherence, 0};
}

TEST(Tile_PrefetchesMostLinesBeforeItLoadsThem) {
  const ReductionsPrefetch prefetch(1);
  const auto check = [](const Axes &axis_len, const std::string &mask, std::size_t bytes) {
    machine::power_up(ranks_for(axis_len));
    const DpuSet set = DpuSet::of_ranks(ranks_for(axis_len));
    const Hypercube cube(set, axis_len);
    for (const int collective :
         {PIDCOMM_ALLTOALL, PIDCOMM_REDUCE_SCATTER, PIDCOMM_ALLREDUCE, PIDCOMM_REDUCE}) {
      Case c = make_case(collective, axis_len, mask, bytes, {PIDCOMM_INT32, PIDCOMM_SUM}, 1);
      c.dst = bytes;
      c.options = audited_by_one_thread();
      machine::run_case(cube, c);
      const pidcomm_audit audit = machine::audit_of(cube);
      check_number(c, "loads_prefetched", audit.loads_prefetched, audit.lines_loaded * 3 / 4,
                   audit.lines_loaded);
    }
  };
  check({16, 16}, "11", 256 * 32);  // blocks of 4 words
  check({63, 4}, "10", 63 * 128);   // a section of 32 entangled groups
  if (effort::is_small()) return;
  check({3, 64}, "01", 64 * 2048);  // 8 sections, two batches of sums in each of 4 steps
  check({8, 32}, "10", 8192);       // reductions of one stream
}

/// A step loads 32 streams. Only the last step of the blocks of 100 words, with 4 words, loads
/// fewer than 512 lines.
TEST(ReductionsWithoutPrefetches_PrefetchOnlyInShortSteps) {
  const ReductionsPrefetch none(0);
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {32, 2});
  Case c =
      make_case(PIDCOMM_REDUCE_SCATTER, {32, 2}, "10", 32 * 800, {PIDCOMM_INT32, PIDCOMM_SUM}, 1);
  c.dst = c.problem.bytes;
  c.options = audited_by_one_thread();
  machine::run_case(cube, c);
  const pidcomm_audit audit = machine::audit_of(cube);
  check_number(c, "loads_prefetched", audit.loads_prefetched, 1, audit.lines_loaded / 10);
}

#ifndef __SANITIZE_THREAD__  // one thread counts two million accesses
TEST(Tile_ReloadsLinesFromTheSecondLevelCache) {
  // Blocks with more words than a step of the section of 40 PEs; a section of 264 PEs.
  for (const verify::Problem &problem :
       {verify::Problem{PIDCOMM_ALLTOALL, {10, 10, 8}, "010", 10 * 8192, PIDCOMM_INT32, 0},
        verify::Problem{PIDCOMM_ALLTOALL, {11, 12, 2}, "110", 132 * 152, PIDCOMM_INT32, 0}}) {
    const Axes &axis_len = problem.axis_len;
    Case c;
    c.problem = problem;
    c.dst = c.problem.bytes;
    c.options = audited_by_one_thread();
    machine::power_up(ranks_for(axis_len));
    const DpuSet set = DpuSet::of_ranks(ranks_for(axis_len));
    const Hypercube cube(set, axis_len);
    const pidcomm_trace trace = machine::run_case(cube, c);
    check_claims(c, trace, machine::audit_of(cube));
  }
}
#endif
TEST(Tile_IsRightIfThreadsShareTheWordsOfASection) { run_grid(kTileThreads); }
TEST(Tile_IsRightOnShortShapes) {
  run_grid({"tile, short shapes",
            short_shapes(),
            {8, 152},
            {PIDCOMM_TECHNIQUE_TILE},
            Isas::kOne,
            kBothPolicies});
}
TEST(OtherTechniques_AreRightForEveryCollectiveMaskLaneSplitAndInPlaceWithAuditedHostPasses) {
  run_grid(kOthers);
}
TEST(OtherTechniques_AreRightWithLongBlocks) { run_grid(kOthersLong); }
TEST(SdkTransfers_AreRightForEveryCollectiveMaskAndInPlaceOnGeneralShapes) {
  run_grid(kSdkGeneral);
}
TEST(SdkTransfers_AreRightWithSlotsOfSeveralPieces) { run_grid(kSdkPieces); }
TEST(RingAndTree_AreRightForEveryMaskLaneSplitAndInPlaceAndStayInTheirWindows) {
  run_grid(kRingAndTree);
}

// Counts the cases of the grids above, for machines with two ISAs (scalar and audit) up to all.
TEST(Grids_MeetEveryKindThreadCountIsaAndPolicyWithEveryTechniqueAndAuditEveryHostPass) {
  const std::vector<Element> kinds = elements();
  const std::size_t policies = std::set<int>(kBothPolicies.begin(), kBothPolicies.end()).size();
  std::vector<int> all_isas;
#define ISA_ROW(ENUM, code, ...) all_isas.push_back(code);
  PIDCOMM_ISAS(ISA_ROW)
#undef ISA_ROW
  using Row = std::vector<int>;
  for (std::size_t count = 2; count <= all_isas.size(); ++count) {
    const std::vector<int> isas(all_isas.begin(),
                                all_isas.begin() + static_cast<std::ptrdiff_t>(count));
    std::map<std::pair<std::string, Row>, std::set<Row>>
        met;  // pair of factors, technique and collective -> levels met
    std::set<std::tuple<Axes, std::string, int, int>> ran, audited;
    for (const Cases *cases : kAllCases) {
      RoundRobin round_robin;
      for (const Axes &axis_len : cases->shapes)
        each_case(*cases, axis_len, isas, round_robin, [&](const Case &c) {
          const verify::Problem &p = c.problem;
          const pidcomm_options &o = c.options;
          ran.insert({p.axis_len, p.mask, p.collective, o.technique});
          if (o.isa == PIDCOMM_ISA_AUDIT)
            audited.insert({p.axis_len, p.mask, p.collective, o.technique});
          met[{"ISA x threads", {o.technique}}].insert({o.isa, o.threads});
          met[{"ISA x policy", {o.technique}}].insert({o.isa, o.coherence});
          met[{"type x threads", {o.technique, p.collective}}].insert({p.type, o.threads});
          if (!c.takes_op()) return;
          met[{"type x op", {o.technique, p.collective}}].insert({p.type, p.op});
          met[{"type x op x ISA", {o.technique}}].insert(
              {p.type, p.op, o.isa == PIDCOMM_ISA_AUDIT ? isas[0] : o.isa});
        });
    }
    const auto check_met = [&](const std::string &what, const Row &with, std::size_t want) {
      const std::size_t got = met[{what, with}].size();
      if (got == want) return;
      machine::fail(std::string("with ") + pidcomm_name(PIDCOMM_TABLE_TECHNIQUE, with[0]) +
                    (with.size() > 1
                         ? std::string(" ") + pidcomm_name(PIDCOMM_TABLE_COLLECTIVE, with[1])
                         : "") +
                    ", " + std::to_string(count) + " ISAs: the grids meet " + std::to_string(got) +
                    " of " + std::to_string(want) + " " + what);
    };
    std::set<int> types;
    for (const Element &kind : kinds) types.insert(kind.type);
    for (const Technique &technique : kTechniques) {
      for (int collective : kCollectives) {
        if (!technique.is_for(collective)) continue;
        check_met("type x threads", {technique.code, collective},
                  RoundRobin::kThreads * types.size());
        if (machine::row_of(collective).takes_op)
          check_met("type x op", {technique.code, collective}, kinds.size());
      }
      check_met("ISA x threads", {technique.code}, RoundRobin::kThreads * count);
      check_met("ISA x policy", {technique.code}, policies * count);
      check_met("type x op x ISA", {technique.code}, (count - 1) * kinds.size());
    }
    const auto check_whole = [&](const Axes &axis_len, int technique) {
      for (const std::string &mask : machine::masks_of(axis_len.size()))
        for (int collective : kCollectives) {
          if (!technique_of(technique).is_for(collective)) continue;
          Case c = make_case(collective, axis_len, mask, 0, kinds[0], 0);
          c.options.technique = technique;
          if (!ran.contains({axis_len, mask, collective, technique}))
            machine::fail("the grids have no case of " + machine::describe(c));
          if (has_host_pass(technique, collective) &&
              !audited.contains({axis_len, mask, collective, technique}))
            machine::fail("the grids audit no case of " + machine::describe(c));
        }
    };
    for (const Axes &axis_len : kFastShapes)
      for (const Technique &technique : kTechniques) check_whole(axis_len, technique.code);
    for (const Axes &axis_len : kGeneralShapes) check_whole(axis_len, PIDCOMM_TECHNIQUE_TILE);
  }
}

}  // namespace
