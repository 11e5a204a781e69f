#include "isa/translation.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace dpuemu::isa {

#ifdef __x86_64__

CodeMemory::CodeMemory(size_t bytes) {
  // The code has the instruction popcnt, which the first x86-64 processors do not have.
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

CodeMemory::CodeMemory(size_t) {}

#endif

CodeMemory::~CodeMemory() {
  if (bytes_ == 0) return;
  munmap(writable_, bytes_);
  munmap(executable_, bytes_);
}

void CodeMemory::write(size_t place, const std::vector<uint8_t> &code) {
  std::memcpy(writable_ + place, code.data(), code.size());
}

Translation::Translation(const Code &code, size_t most_bytes)
    : code_(code),
      frame_(make_frame()),
      process_(getpid()),
      memory_(most_bytes < frame_.bytes.size() ? 0 : most_bytes),
      entries_(code.size()) {
  static_assert(sizeof entries_[0] == 8 && std::atomic<const uint8_t *>::is_always_lock_free);
  if (memory_.bytes() == 0) return;
  memory_.write(0, frame_.bytes);
  used_ = frame_.bytes.size();
  for (auto &entry : entries_) entry.store(untranslated(), std::memory_order_relaxed);
}

const uint8_t *Translation::untranslated() const {
  return memory_.at(frame_.leave[static_cast<size_t>(Leave::kTranslate)]);
}

bool Translation::translate(uint32_t pc) const {
  if (memory_.bytes() == 0 || pc >= entries_.size()) return false;
  if (entries_[pc].load(std::memory_order_acquire) != untranslated()) return true;
  // A process and its child share the memory after a fork, but not the table.
  if (getpid() != process_) return false;
  const std::lock_guard lock(mutex_);
  if (entries_[pc].load(std::memory_order_relaxed) != untranslated()) return true;
  // The processor may have read a line of 64 bytes, so no line gets code at two times.
  const size_t place = (used_ + 63) / 64 * 64;
  const auto place_of = [&](uint32_t at) -> std::optional<uint32_t> {
    const uint8_t *const entry = entries_[at].load(std::memory_order_relaxed);
    if (entry == untranslated()) return {};
    return static_cast<uint32_t>(entry - memory_.at(0));
  };
  const std::vector<uint8_t> code =
      make_block(code_, pc, frame_, static_cast<uint32_t>(place), place_of);
  if (place > memory_.bytes() || code.size() > memory_.bytes() - place) return false;
  memory_.write(place, code);
  used_ = place + code.size();
  entries_[pc].store(memory_.at(place), std::memory_order_release);
  return true;
}

Outcome Translation::run(Tasklet &tasklet, Wram wram, uint64_t budget) const {
  const auto all =
      static_cast<int64_t>(std::min<uint64_t>(budget, std::numeric_limits<int64_t>::max()));
  int64_t rest = all;
  const auto done = [&] { return static_cast<uint64_t>(all - rest); };
  while (translate(tasklet.pc)) {
    const auto enter = reinterpret_cast<Enter>(reinterpret_cast<uintptr_t>(memory_.at(0)));
    const Left left = enter(&tasklet, wram.bytes, wram.size, rest, entries_.data(),
                            entries_[tasklet.pc].load(std::memory_order_acquire));
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
