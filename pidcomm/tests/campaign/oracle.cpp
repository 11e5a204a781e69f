// Runs random collectives on several sets at once and compares each result with the oracle's. MRAM
// and host memory around the windows must not change.
#include <thread>

#include "../native/collective_cases.h"
#include "campaign.h"
#include "pidcomm/pidcomm.hpp"

namespace {

using namespace collective_cases;
using campaign::Random;

constexpr std::uint64_t kBatch = 200;  // cases on one hypercube
constexpr std::uint32_t kSetPes = 128;
constexpr std::size_t kPayloadBytes = 1 << 18;

/// One of the shapes that a set of kSetPes can have; half of them have a lane split.
Axes random_shape(Random &random) {
  for (;;) {
    Axes axis_len(1 + random.below(4));
    const bool has_lane_split = random.one_in(2);
    for (std::uint32_t &len : axis_len)
      len =
          has_lane_split ? 1u << random.below(5) : static_cast<std::uint32_t>(1 + random.below(13));
    if (random.one_in(3)) axis_len.back() = static_cast<std::uint32_t>(1 + random.below(13));
    const std::size_t pes = pes_of(axis_len);
    if (pes > kSetPes || (has_lane_split && !machine::is_fast(axis_len))) continue;
    if (pes <= 40 || random.one_in(4)) return axis_len;  // small sets are faster
  }
}

/// An offset near a boundary of the address map; few different pages, so that the machine stays
/// small.
std::size_t random_place(Random &random, std::size_t window_bytes) {
  if (random.one_in(8)) return machine::kMramBytes - window_bytes - 8 * random.below(4);
  const std::size_t boundary = random.one_in(4) ? 0 : std::size_t{1} << (13 + random.below(13));
  const std::size_t ahead = 8 * random.below(random.one_in(2) ? 4 : 140);
  return boundary < ahead || random.one_in(3) ? boundary + ahead : boundary - ahead;
}

bool overlap(std::size_t a, std::size_t a_bytes, std::size_t b, std::size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

std::size_t random_bytes(Random &random, const Axes &axis_len, int collective,
                         std::uint32_t group_pes) {
  const std::size_t most_words = random.one_in(30) ? 2200 : random.one_in(4) ? 140 : 9;
  const std::size_t most_bytes = std::max<std::size_t>(
      8, kPayloadBytes / pes_of(axis_len) /
             (machine::row_of(collective).bytes_are_blocks() ? group_pes : 1));
  return bytes_for_blocks(collective, group_pes,
                          std::min(8 * random.below(most_words), most_bytes / 8 * 8));
}

Case random_case(Random &random, const Axes &axis_len) {
  static const std::vector<Element> kElements = elements();
  static const std::vector<int> kIsas = machine::available_isas();
  const int collective = random.of(kCollectives);
  std::string mask;
  for (std::size_t axis = 0; axis < axis_len.size(); ++axis) mask += random.one_in(2) ? '1' : '0';
  const std::uint32_t group_pes = verify::groups_of(axis_len, mask).group_pes;
  Case c =
      make_case(collective, axis_len, mask, random_bytes(random, axis_len, collective, group_pes),
                random.of(kElements), random.next() >> 20);
  if (c.takes_op() && random.one_in(4)) c.fill = random.one_in(2) ? Fill::kSpecial : Fill::kExact;

  int technique =
      random.one_in(10) ? +PIDCOMM_TECHNIQUE_AUTO : random.of(techniques_for(collective, axis_len));
  // PEs that reorder blocks take milliseconds.
  if (technique > 0 && reorders(technique, collective, axis_len, mask) && !random.one_in(20))
    technique = PIDCOMM_TECHNIQUE_TILE;
  if (technique > 0)
    use_technique(c, technique, 8);
  else
    c.options.technique = technique;
  const std::size_t in = verify::rows_before(c.problem).row_bytes,
                    out = verify::rows_after(c.problem).row_bytes;
  c.src = random_place(random, std::max(in, out));
  c.dst = c.src;
  if (!can_be_in_place(collective) || !random.one_in(3)) do
      c.dst = random_place(random, out);
    while (overlap(c.src, in, c.dst, out));
  if (c.options.scratch_offset != 0) do
      c.options.scratch_offset = random_place(random, in);
    while (c.options.scratch_offset == 0 || overlap(c.options.scratch_offset, in, c.src, in) ||
           overlap(c.options.scratch_offset, in, c.dst, out));
  c.names_mram_bytes = random.one_in(2);
  c.options.isa = random.one_in(4) ? 0 : random.of(kIsas);
  c.options.threads = static_cast<int>(random.below(5));
  c.options.coherence = random.one_in(4) ? +PIDCOMM_COHERENCE_HARDWARE : machine::kDefaultCoherence;
  return c;
}

/// Simplifies a failing case as long as it fails, one choice at a time, and returns what the
/// simplest one reports.
std::string simplified(const Hypercube &cube, Case c, machine::Run run, std::string report) {
  const auto attempt = [&](const auto &change) {
    Case simpler = c;
    change(simpler);
    try {
      machine::run_case(cube, simpler, run);
    } catch (const std::exception &error) {
      c = simpler;
      report = error.what();
    }
  };
  attempt([](Case &s) { s.options.threads = 1; });
  attempt([](Case &s) { s.options.isa = PIDCOMM_ISA_SCALAR; });
  attempt([](Case &s) { s.options.coherence = 0; });
  attempt([](Case &s) { s.names_mram_bytes = false; });
  attempt([](Case &s) {
    s.problem.type = PIDCOMM_INT32, s.problem.op = PIDCOMM_SUM, s.fill = Fill::kDistinct;
  });
  attempt([](Case &s) { s.dst = s.src == s.dst ? 0 : 1 << 20, s.src = 0; });
  attempt([&](Case &s) {
    s.problem.bytes = bytes_for_blocks(
        s.problem.collective, verify::groups_of(s.problem.axis_len, s.problem.mask).group_pes, 8);
  });
  return report;
}

/// With every fourth seed, each rank lacks the same DPUs.
bool has_disabled(const campaign::Run &run) { return run.seed % 4 == 3; }

/// Runs the cases of one batch: a set, a hypercube, kBatch cases.
void run_batch(campaign::Run &run, std::uint64_t batch) {
  Random random(run.seed, batch);
  const Axes axis_len = random_shape(random);
  const std::size_t pes = pes_of(axis_len);
  const auto first =
      static_cast<std::uint32_t>(random.one_in(2) ? 0 : 8 * random.below((kSetPes - pes) / 8 + 1));
  const auto dpus =
      static_cast<std::uint32_t>(first + (random.one_in(2) ? pes : (pes + 7) / 8 * 8));
  const DpuSet set = has_disabled(run) ? DpuSet::of_ranks(kSetPes / 64) : DpuSet::of_dpus(dpus);
  if (first + pes > pidcomm::usable_pes(set.get()).size()) return;
  const Hypercube cube(set, axis_len, first);
  for (std::uint64_t number = batch * kBatch; number < (batch + 1) * kBatch && !run.is_over();
       ++number) {
    if (run.only_one && number != run.only) continue;
    Random choices(run.seed, ~number);
    const Case c = random_case(choices, axis_len);
    const machine::Run how =
        std::vector<machine::Run>{pidcomm_run, pidcomm_run, machine::start_and_wait,
                                  machine::start_and_poll}[choices.below(4)];
    run.count();
    try {
      machine::run_case(cube, c, how);
    } catch (const std::exception &error) {
      run.find(number, true, simplified(cube, c, how, error.what()));
    }
  }
}

}  // namespace

int main(int argc, char **argv) {
  campaign::Run run(argc, argv);
  const std::uint32_t threads =
      run.only_one ? 1 : std::max(2u, std::thread::hardware_concurrency());
  const std::uint32_t ranks = std::min(threads * kSetPes / 64, DPUEMU_MAX_RANKS);
  std::vector<machine::Place> disabled;
  Random random(run.seed);
  for (std::uint64_t missing = has_disabled(run) ? 1 + random.below(4) : 0; missing > 0;
       --missing) {
    const auto chip = static_cast<std::uint32_t>(random.below(8)),
               bank = static_cast<std::uint32_t>(random.below(8));
    for (std::uint32_t rank = 0; rank < ranks; ++rank) disabled.push_back({rank, chip, bank});
  }
  machine::power_up(ranks, disabled);
  std::atomic<std::uint64_t> batches{run.only / kBatch};
  {
    std::vector<std::jthread> workers;
    for (std::uint32_t i = 0; i < ranks * 64 / kSetPes; ++i)
      workers.emplace_back([&] {
        do try {
            run_batch(run, batches++);
          } catch (const std::exception &error) {
            run.find(batches * kBatch, false, error.what());
          }
        while (!run.only_one && !run.is_over());
      });
  }
  return run.finish();
}
