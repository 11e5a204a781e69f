#include <algorithm>
#include <bit>
#include <cstring>

#include "profile/profile.h"
#include "profile/profiles.h"

namespace dpuemu {

void PeProfile::Place::add(const Place &other) {
  instructions += other.instructions;
  repeated += other.repeated;
  dma_bytes += other.dma_bytes;
  for (size_t i = 0; i < kWaits; ++i) {
    waited[i] += other.waited[i];
    unfinished[i] += other.unfinished[i];
  }
}

void PeProfile::begin(const Program &program, const PePlace &place) {
  program_ = &program;
  place_ = place;
  std::fill_n(place.counters(), program.counter_bytes(), uint8_t{0});
  computing_cycles_ = engine_cycles_ = 0;
  places_.clear();
  waiting_ = 0;
}

void PeProfile::call(uint32_t tasklet, uint32_t place, uint32_t instructions) {
  at_[tasklet] = &places_[place];
  at_[tasklet]->instructions += instructions;
}

void PeProfile::wait(uint32_t tasklet, Wait what, double now) {
  since_[tasklet] = now;
  waits_for_[tasklet] = what;
  waiting_ |= 1u << tasklet;
}

void PeProfile::wait_for_dma(uint32_t tasklet, double now, const Dma &dma) {
  wait(tasklet, Wait::kDma, now);
  at_[tasklet]->dma_bytes += dma.bytes;
  engine_cycles_ += dma.engine_end - dma.engine_begin;
}

void PeProfile::resume(uint32_t tasklet, double now, uint64_t instructions) {
  waiting_ &= ~(1u << tasklet);
  at_[tasklet]->waited[static_cast<size_t>(waits_for_[tasklet])] += now - since_[tasklet];
  at_[tasklet]->repeated += instructions;
}

void PeProfile::end(const PeReport &report) {
  for (; waiting_ != 0; waiting_ &= waiting_ - 1) {
    const auto tasklet = static_cast<uint32_t>(std::countr_zero(waiting_));
    const auto what = static_cast<size_t>(waits_for_[tasklet]);
    at_[tasklet]->waited[what] += report.cycles - since_[tasklet];
    ++at_[tasklet]->unfinished[what];
  }
  std::vector<uint64_t> counters(program_->counter_bytes() / sizeof(uint64_t));
  if (!counters.empty()) std::memcpy(counters.data(), place_.counters(), program_->counter_bytes());
  Profiles::instance().add(*program_,
                           {report, counters, places_, computing_cycles_, engine_cycles_});
}

bool PeProfile::is_counting(uint64_t address) const {
  // compiler/profiling.py: movq counter, %r11; leaq 1(%r11) or (%r11,%rcx,N), %r11; movq %r11,
  // counter.
  constexpr uint8_t kAdd[] = {0x4D, 0x8D}, kStore[] = {0x4C, 0x89, 0x1C, 0x25};
  constexpr uint64_t kAddBytes = 4, kStoreBytes = 8;
  const uint64_t offset = address - reinterpret_cast<uintptr_t>(place_.text);
  const auto is_at = [&](const auto &code, uint64_t at) {
    return std::memcmp(place_.text + at, code, sizeof code) == 0;
  };
  if (offset >= program_->text_bytes() || program_->text_bytes() - offset < kStoreBytes)
    return false;
  if (is_at(kStore, offset)) return true;
  return program_->text_bytes() - offset >= kAddBytes + kStoreBytes && is_at(kAdd, offset) &&
         is_at(kStore, offset + kAddBytes);
}

}  // namespace dpuemu
