// The modelled time of a PE: PeClock has the times of a plain definition, which looks at all
// tasklets in each step.
#include "pe/clock.h"

#include <bit>
#include <limits>
#include <random>
#include <string>

#include "harness.h"

using namespace dpuemu;

namespace {

class Definition {
 public:
  void compute(uint32_t tasklet, uint64_t instructions) {
    computing_ |= 1u << tasklet;
    due_[tasklet] = issued_ + static_cast<double>(instructions);
    computing_instructions_[tasklet] = instructions;
  }
  void transfer(uint32_t tasklet, uint32_t bytes) {
    const double begin = std::max(now_, engine_free_);
    engine_free_ = begin + std::max(kLeastEngineCycles, kEngineCyclesPerByte * bytes);
    transferring_ |= 1u << tasklet;
    due_[tasklet] = begin + kTransferCycles + kTransferCyclesPerByte * bytes;
  }
  void spin(uint32_t tasklet) {
    spinning_ |= 1u << tasklet;
    spun_since_[tasklet] = issued_;
  }
  void stop_spinning(uint32_t tasklet) {
    if ((spinning_ >> tasklet & 1) == 0) return;
    spinning_ &= ~(1u << tasklet);
    instructions_ += static_cast<uint64_t>(issued_ - spun_since_[tasklet]);
  }
  PeClock::Completion next() {
    const uint32_t computed = first_of(computing_), transferred = first_of(transferring_);
    if (computed == PeClock::kNobody && transferred == PeClock::kNobody) return {computed, false};
    const double cycles_per_instruction =
        std::max(kIssueCycles, static_cast<double>(std::popcount(computing_ | spinning_)));
    const double computed_at = computed == PeClock::kNobody
                                   ? kNever
                                   : now_ + (due_[computed] - issued_) * cycles_per_instruction;
    const double transferred_at = transferred == PeClock::kNobody ? kNever : due_[transferred];
    mixed_ties += computed_at == transferred_at;
    if (computed_at < transferred_at || (computed_at == transferred_at && computed < transferred)) {
      computing_ &= ~(1u << computed);
      const uint32_t second = first_of(computing_);
      ties += second != PeClock::kNobody && due_[second] == due_[computed];
      issued_ = due_[computed];
      now_ = computed_at;
      instructions_ += computing_instructions_[computed];
      return {computed, false};
    }
    if ((computing_ | spinning_) != 0) issued_ += (transferred_at - now_) / cycles_per_instruction;
    now_ = transferred_at;
    transferring_ &= ~(1u << transferred);
    return {transferred, true};
  }
  double cycles() const { return now_; }
  uint64_t instructions() const { return instructions_; }

  /// The numbers of steps in which two tasklets ended at the same time: both computed; one computed
  /// and one transferred.
  uint32_t ties = 0, mixed_ties = 0;

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  uint32_t first_of(uint32_t tasklets) const {
    uint32_t first = PeClock::kNobody;
    for (uint32_t i = 0; i < PE_MAX_TASKLETS; ++i)
      if ((tasklets >> i & 1) != 0 && (first == PeClock::kNobody || due_[i] < due_[first]))
        first = i;
    return first;
  }

  uint32_t computing_ = 0, transferring_ = 0, spinning_ = 0;  // bit sets
  double now_ = 0, issued_ = 0, engine_free_ = 0;
  uint64_t instructions_ = 0;
  double due_[PE_MAX_TASKLETS] = {};
  uint64_t computing_instructions_[PE_MAX_TASKLETS] = {};
  double spun_since_[PE_MAX_TASKLETS] = {};
};

/// Gives all calls to the clock and to the definition, and compares their times.
class Both {
 public:
  explicit Both(PeClock &clock) : clock_(clock) { clock.start(); }

  template <class Call>
  void call(Call &&call) {
    call(clock_);
    call(definition);
    check();
  }
  /// Returns the tasklet that completes its work.
  uint32_t next() {
    const PeClock::Completion got = clock_.next(), want = definition.next();
    CHECK_EQ(got.tasklet, want.tasklet);
    CHECK_EQ(got.is_transfer, want.is_transfer);
    check();
    return got.tasklet;
  }

  Definition definition;

 private:
  void check() const {
    CHECK(clock_.cycles() == definition.cycles());  // every bit
    CHECK_EQ(clock_.instructions(), definition.instructions());
  }
  PeClock &clock_;
};

}  // namespace

TEST(PeClock_HasTheTimesOfTheDefinitionForRandomCalls) {
  PeClock clock;  // one clock, so that start() has to forget the work of the previous round
  uint32_t ties = 0;
  for (uint32_t tasklets = 1; tasklets <= PE_MAX_TASKLETS; ++tasklets) {
    for (uint32_t round = 0; round < 8; ++round) {
      std::mt19937 random(100 * tasklets + round);
      const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
      // Rounds have few or many ties, transfers, spinning tasklets and parked tasklets.
      const uint32_t most_instructions = round % 2 == 0 ? 4 : 5000, transfers = 1 + below(8),
                     spins = below(8), steps = 1 + below(8);
      Both both(clock);
      uint32_t parked = (1u << tasklets) - 1, spinning = 0;  // bit sets
      for (uint32_t i = 0; i < 4000; ++i) {  // a queue holds 192 inserts before it moves
        const uint32_t tasklet = below(tasklets), bit = 1u << tasklet;
        if (below(8 + steps) < steps) {
          const uint32_t completed = both.next();
          if (completed != PeClock::kNobody) parked |= 1u << completed;
        } else if ((parked & bit) == 0) {
          both.call([&](auto &of) { of.stop_spinning(tasklet); });
          parked |= spinning & bit;
          spinning &= ~bit;
        } else {
          parked &= ~bit;
          const uint32_t kind = below(8 + transfers + spins);
          if (kind < transfers) {
            const uint32_t bytes = 8 * (1 + below(256));
            both.call([&](auto &of) { of.transfer(tasklet, bytes); });
          } else if (kind < transfers + spins) {
            spinning |= bit;
            both.call([&](auto &of) { of.spin(tasklet); });
          } else {
            const uint64_t instructions = below(most_instructions);
            both.call([&](auto &of) { of.compute(tasklet, instructions); });
          }
        }
      }
      ties += both.definition.ties;
      if (round % 4 < 2) continue;  // the next round starts with work in the queues
      for (uint32_t i = 0; i < tasklets; ++i) both.call([&](auto &of) { of.stop_spinning(i); });
      while (both.next() != PeClock::kNobody) continue;
    }
  }
  CHECK(ties > 1000);
}

TEST(PeClock_CompletesTheLowerTaskletFirstIfATransferEndsWithAComputation) {
  // 28 instructions at 14 cycles each, and a transfer of 650 bytes, take 392 cycles.
  PeClock clock;
  for (const auto &[computes, transfers] : {std::pair(3u, 17u), std::pair(17u, 3u)}) {
    Both both(clock);
    both.call([&](auto &of) { of.compute(computes, 28); });
    both.call([&](auto &of) { of.transfer(transfers, 650); });
    for (uint32_t i = 4; i < 17; ++i) both.call([&](auto &of) { of.spin(i); });
    CHECK_EQ(both.next(), 3u);
    CHECK_EQ(both.definition.mixed_ties, 1u);
    CHECK_EQ(both.next(), 17u);
    CHECK(clock.cycles() == 392);
    CHECK_EQ(both.next(), PeClock::kNobody);
  }
}
