#include "pe/clock.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace dpuemu {

void PeClock::Queue::insert(uint32_t tasklet, double due) {
  if (end_ == kEntries) {
    std::copy(entries_ + begin_, entries_ + end_, entries_);
    end_ -= std::exchange(begin_, 0);
  }
  uint32_t place = end_++;
  for (; place != begin_; --place) {
    const Entry &before = entries_[place - 1];
    if (before.due < due || (before.due == due && before.tasklet < tasklet)) break;
    entries_[place] = before;
  }
  entries_[place] = {due, tasklet};
}

void PeClock::start() { *this = PeClock(); }

void PeClock::compute(uint32_t tasklet, uint64_t instructions) {
  computing_.insert(tasklet, issued_ + static_cast<double>(instructions));
  computing_instructions_[tasklet] = instructions;
}

void PeClock::transfer(uint32_t tasklet, uint32_t bytes) {
  const double begin = std::max(now_, engine_free_);
  engine_free_ = begin + std::max(kLeastEngineCycles, kEngineCyclesPerByte * bytes);
  transferring_.insert(tasklet, begin + kTransferCycles + kTransferCyclesPerByte * bytes);
}

void PeClock::spin(uint32_t tasklet) {
  spinning_ |= 1u << tasklet;
  ++spinners_;
  spun_since_[tasklet] = issued_;
}

void PeClock::stop_spinning(uint32_t tasklet) {
  if ((spinning_ >> tasklet & 1) == 0) return;
  spinning_ &= ~(1u << tasklet);
  --spinners_;
  instructions_ += static_cast<uint64_t>(issued_ - spun_since_[tasklet]);
}

uint32_t PeClock::next() {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const uint32_t issuing = computing_.size() + spinners_;
  const double cycles_per_instruction = std::max(kIssueCycles, static_cast<double>(issuing));
  const uint32_t computed = computing_.is_empty() ? kNobody : computing_.first(),
                 transferred = transferring_.is_empty() ? kNobody : transferring_.first();
  const double computed_at =
      computed == kNobody ? kNever : now_ + (computing_.due() - issued_) * cycles_per_instruction;
  const double transferred_at = transferred == kNobody ? kNever : transferring_.due();
  if (computed == kNobody && transferred == kNobody) return kNobody;
  if (computed_at < transferred_at || (computed_at == transferred_at && computed < transferred)) {
    issued_ = computing_.due();
    now_ = computed_at;
    instructions_ += computing_instructions_[computed];
    computing_.pop();
    return computed;
  }
  if (issuing != 0) issued_ += (transferred_at - now_) / cycles_per_instruction;
  now_ = transferred_at;
  transferring_.pop();
  return transferred;
}

}  // namespace dpuemu
