#include "pe/clock.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace dpuemu {

void PeClock::start() { *this = PeClock(); }

void PeClock::compute(uint32_t tasklet, uint64_t instructions) {
  computing_ |= 1u << tasklet;
  due_[tasklet] = issued_ + static_cast<double>(instructions);
  computing_instructions_[tasklet] = instructions;
}

void PeClock::transfer(uint32_t tasklet, uint32_t bytes) {
  const double begin = std::max(now_, engine_free_);
  engine_free_ = begin + std::max(kLeastEngineCycles, kEngineCyclesPerByte * bytes);
  transferring_ |= 1u << tasklet;
  due_[tasklet] = begin + kTransferCycles + kTransferCyclesPerByte * bytes;
}

void PeClock::spin(uint32_t tasklet) {
  spinning_ |= 1u << tasklet;
  spun_since_[tasklet] = issued_;
}

void PeClock::stop_spinning(uint32_t tasklet) {
  if ((spinning_ >> tasklet & 1) == 0) return;
  spinning_ &= ~(1u << tasklet);
  instructions_ += static_cast<uint64_t>(issued_ - spun_since_[tasklet]);
}

uint32_t PeClock::next() {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  uint32_t computed = kNobody, transferred = kNobody;
  double least_issued = kNever, transferred_at = kNever;
  for (uint32_t left = computing_; left != 0; left &= left - 1) {
    const auto tasklet = static_cast<uint32_t>(std::countr_zero(left));
    if (due_[tasklet] < least_issued) least_issued = due_[computed = tasklet];
  }
  for (uint32_t left = transferring_; left != 0; left &= left - 1) {
    const auto tasklet = static_cast<uint32_t>(std::countr_zero(left));
    if (due_[tasklet] < transferred_at) transferred_at = due_[transferred = tasklet];
  }
  const double cycles_per_instruction =
      std::max(kIssueCycles, static_cast<double>(std::popcount(computing_ | spinning_)));
  const double computed_at =
      computed == kNobody ? kNever : now_ + (least_issued - issued_) * cycles_per_instruction;
  if (computed == kNobody && transferred == kNobody) return kNobody;
  if (computed_at < transferred_at || (computed_at == transferred_at && computed < transferred)) {
    issued_ = least_issued;
    now_ = computed_at;
    instructions_ += computing_instructions_[computed];
    computing_ &= ~(1u << computed);
    return computed;
  }
  if ((computing_ | spinning_) != 0) issued_ += (transferred_at - now_) / cycles_per_instruction;
  now_ = transferred_at;
  transferring_ &= ~(1u << transferred);
  return transferred;
}

}  // namespace dpuemu
