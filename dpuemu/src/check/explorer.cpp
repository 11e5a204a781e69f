#include "check/explorer.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

namespace dpuemu {
namespace {

uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

/// For each tasklet, the number of its steps that happened before.
struct Clock {
  uint32_t steps[PE_MAX_TASKLETS] = {};
  void join(const Clock &other) {
    for (uint32_t i = 0; i < PE_MAX_TASKLETS; ++i) steps[i] = std::max(steps[i], other.steps[i]);
  }
};

/// The last steps that used an object.
struct Uses {
  Clock written, read;           // before or at the last write; before or at the reads since then
  uint32_t writer = UINT32_MAX;  // step
  uint32_t readers[PE_MAX_TASKLETS];  // steps since the last write
  uint32_t reader_set = 0;            // bit set of tasklets
};

}  // namespace

uint64_t Explorer::next_random() { return mixed(random_++); }

bool Explorer::begin() {
  steps_.clear();
  objects_.clear();
  waiting_ = 0;
  if (std::exchange(is_first_, false)) {
    order_ = {};
    return true;
  }
  if (waiting_orders_.empty()) return false;
  std::swap(waiting_orders_[next_random() % waiting_orders_.size()], waiting_orders_.back());
  order_ = std::move(waiting_orders_.back());
  waiting_orders_.pop_back();
  return true;
}

uint32_t Explorer::choose(uint32_t ready) {
  const auto place = static_cast<uint32_t>(steps_.size());
  const uint32_t awake = (ready & ~waiting_) != 0 ? ready & ~waiting_ : ready;
  // The next tasklet after the last one, so that all make progress while others wait in loops.
  const uint32_t last = steps_.empty() ? 0 : steps_.back().tasklet;
  const uint32_t later = awake >> last << last;
  const auto next = static_cast<uint32_t>(std::countr_zero(later != 0 ? later : awake));
  uint32_t chosen = next;
  if (place < order_.length)
    chosen = (*order_.choices)[place];
  else if (place == order_.length && order_.choices != nullptr)
    chosen = order_.tasklet;
  if ((ready >> chosen & 1) == 0) chosen = next;
  waiting_ = 0;
  steps_.push_back({static_cast<uint8_t>(chosen), awake, static_cast<uint32_t>(objects_.size())});
  return chosen;
}

void Explorer::add(const std::shared_ptr<const std::vector<uint8_t>> &choices, uint32_t place,
                   uint32_t tasklet) {
  const auto key = [&](uint32_t next) { return mixed(prefixes_[place] ^ mixed(next + 1)); };
  seen_.insert(key((*choices)[place]));
  if (seen_.insert(key(tasklet)).second)
    waiting_orders_.push_back({choices, place, static_cast<uint8_t>(tasklet)});
}

void Explorer::end() {
  ++tried_;
  auto choices = std::make_shared<std::vector<uint8_t>>();
  choices->reserve(steps_.size());
  for (const Step &step : steps_) choices->push_back(step.tasklet);
  Clock clocks[PE_MAX_TASKLETS];
  std::vector<uint32_t> numbers(steps_.size());  // of each step among those of its tasklet
  std::unordered_map<uint64_t, Uses> uses;
  struct Reversal {
    uint32_t place, tasklet;
  };
  std::vector<Reversal> reversals;
  prefixes_.assign(steps_.size(), 0);
  uint64_t prefix = 0;
  for (uint32_t i = 0; i < steps_.size(); ++i) {
    const Step &step = steps_[i];
    const size_t end = i + 1 < steps_.size() ? steps_[i + 1].first_object : objects_.size();
    Clock &clock = clocks[step.tasklet];
    const Clock before = clock;
    prefixes_[i] = prefix;
    numbers[i] = ++clock.steps[step.tasklet];
    const auto reverse = [&](uint32_t other) {
      if (other == UINT32_MAX || steps_[other].tasklet == step.tasklet ||
          numbers[other] <= before.steps[steps_[other].tasklet])
        return;
      reversals.push_back({other, step.tasklet});
    };
    for (size_t j = step.first_object; j < end; ++j) {
      const Object &object = objects_[j];
      if ((object.id & kWake) != 0) continue;
      Uses &use = uses[object.id];
      if (object.is_reversible) {
        reverse(use.writer);
        if (object.is_written)
          for (uint32_t left = use.reader_set; left != 0; left &= left - 1)
            reverse(use.readers[std::countr_zero(left)]);
      }
      clock.join(use.written);
      if (object.is_written) clock.join(use.read);
    }
    for (size_t j = step.first_object; j < end; ++j) {
      const Object &object = objects_[j];
      if ((object.id & kWake) != 0) {
        clocks[object.id & ~kWake].join(clock);
        continue;
      }
      Uses &use = uses[object.id];
      if (object.is_written) {
        use.written = clock;
        use.read = {};
        use.reader_set = 0;
        // Only steps that may come first can be reversed (a lock, but not the unlock before it).
        if (object.is_reversible) use.writer = i;
      } else {
        use.read.join(clock);
        use.readers[step.tasklet] = i;
        use.reader_set |= 1u << step.tasklet;
      }
    }
    uint64_t hash = step.tasklet;
    for (const uint32_t steps : clock.steps) hash = mixed(hash ^ steps);
    prefix += hash;  // in any order
  }
  for (const Reversal &reversal : reversals) {
    const uint32_t ready = steps_[reversal.place].ready;
    if ((ready >> reversal.tasklet & 1) != 0) {
      add(choices, reversal.place, reversal.tasklet);
      continue;
    }
    for (uint32_t left = ready & ~(1u << (*choices)[reversal.place]); left != 0; left &= left - 1)
      add(choices, reversal.place, static_cast<uint32_t>(std::countr_zero(left)));
  }
}

void Explorer::restart() {
  is_first_ = true;
  waiting_orders_.clear();
  seen_.clear();
}

}  // namespace dpuemu
