#include "isa/translation.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace dpuemu::isa {

#ifdef __x86_64__

HostCodeMemory::HostCodeMemory(size_t bytes) {
  // Host code has the instruction popcnt, which the first x86-64 processors do not have.
  if (bytes == 0 || !__builtin_cpu_supports("popcnt")) return;
  const int file = memfd_create("dpuemu-code", MFD_CLOEXEC);
  if (file < 0) return;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    void *const writable = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void *const executable = mmap(nullptr, bytes, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
    const bool has_both = writable != MAP_FAILED && executable != MAP_FAILED;
    if (has_both) {
      bytes_ = bytes;
      writable_ = static_cast<uint8_t *>(writable);
      executable_ = static_cast<uint8_t *>(executable);
    } else {
      for (void *const one : {writable, executable})
        if (one != MAP_FAILED) munmap(one, bytes);
    }
  }
  close(file);
}

#else

HostCodeMemory::HostCodeMemory(size_t) {}

#endif

HostCodeMemory::~HostCodeMemory() {
  if (bytes_ == 0) return;
  munmap(writable_, bytes_);
  munmap(executable_, bytes_);
}

void HostCodeMemory::write(size_t place, const std::vector<uint8_t> &host_code) {
  std::memcpy(writable_ + place, host_code.data(), host_code.size());
}

HostCode::HostCode(const Code &code, const Frame &frame, size_t most_bytes, const HostCode *parent)
    : before(parent),
      code_(code),
      frame_(frame),
      process_(getpid()),
      memory_(most_bytes < frame.bytes.size() ? 0 : most_bytes),
      untranslated_(memory_.bytes() == 0
                        ? nullptr
                        : memory_.at(frame.leave[static_cast<size_t>(Leave::kTranslate)])),
      used_(frame.bytes.size()),
      is_full_(memory_.bytes() == 0),
      entries_(code.size()) {
  static_assert(sizeof entries_[0] == 8 && std::atomic<const uint8_t *>::is_always_lock_free);
  if (is_full_) return;
  memory_.write(0, frame.bytes);
  for (uint32_t pc = 0; pc < entries_.size(); ++pc) {
    const bool is_known = before != nullptr && before->has(pc);
    entries_[pc].store(is_known ? before->entries_[pc].load() : untranslated_,
                       std::memory_order_relaxed);
  }
}

bool HostCode::is_of_this_process() const { return process_ == getpid(); }

void HostCode::add(uint32_t pc) {
  const std::lock_guard lock(mutex_);
  if (has(pc) || is_full()) return;
  // The processor may have read a line of 64 bytes, so no line gets code at two times.
  const size_t place = (used_ + 63) / 64 * 64;
  const auto place_of = [&](uint32_t at) -> std::optional<uint32_t> {
    const uint8_t *const entry = entries_[at].load(std::memory_order_relaxed);
    const bool is_here = entry >= memory_.at(0) && entry < memory_.at(0) + memory_.bytes();
    if (entry == untranslated_ || !is_here) return {};
    return static_cast<uint32_t>(entry - memory_.at(0));
  };
  const std::vector<uint8_t> block =
      make_block(code_, pc, frame_, static_cast<uint32_t>(place), place_of);
  if (place > memory_.bytes() || block.size() > memory_.bytes() - place) {
    is_full_ = true;
    return;
  }
  memory_.write(place, block);
  used_ = place + block.size();
  entries_[pc].store(memory_.at(place), std::memory_order_release);
}

Left HostCode::run(Tasklet &tasklet, Wram wram, int64_t budget) const {
  const auto enter = reinterpret_cast<Enter>(reinterpret_cast<uintptr_t>(memory_.at(0)));
  return enter(&tasklet, wram.bytes, wram.size, budget, entries_.data(),
               entries_[tasklet.pc].load(std::memory_order_acquire));
}

Translation::~Translation() {
  for (const HostCode *last = host_code_; last != nullptr;)
    delete std::exchange(last, last->before);
}

bool Translation::is_translated(uint32_t pc) const {
  const HostCode *const host_code = host_code_.load(std::memory_order_acquire);
  return host_code != nullptr && host_code->has(pc);
}

const HostCode *Translation::translate(uint32_t pc) const {
  HostCode *host_code = host_code_.load(std::memory_order_acquire);
  if (host_code != nullptr && host_code->has(pc)) return host_code;
  if (pc >= code_.size()) return nullptr;
  // A process and its child share the memory after a fork, but not the table of entries.
  while (host_code == nullptr || !host_code->is_of_this_process()) {
    auto made = std::make_unique<HostCode>(code_, frame_, most_bytes_, host_code);
    if (host_code_.compare_exchange_strong(host_code, made.get())) host_code = made.release();
  }
  if (!host_code->is_full()) host_code->add(pc);
  return host_code->has(pc) ? host_code : nullptr;
}

Outcome Translation::run(Tasklet &tasklet, Wram wram, uint64_t budget) const {
  const auto all =
      static_cast<int64_t>(std::min<uint64_t>(budget, std::numeric_limits<int64_t>::max()));
  int64_t rest = all;
  const auto done = [&] { return static_cast<uint64_t>(all - rest); };
  while (const HostCode *const host_code = translate(tasklet.pc)) {
    const Left left = host_code->run(tasklet, wram, rest);
    rest = left.budget;
    if (left.why == Leave::kBudget) return {Stop::kBudget, done()};
    if (left.why == Leave::kInterpret) break;
  }
  Outcome outcome =
      interpret(code_, tasklet, wram, static_cast<uint64_t>(std::max<int64_t>(rest, 0)));
  outcome.instructions += done();
  return outcome;
}

}  // namespace dpuemu::isa
