// The sentences of findings.
#include <cstdio>

#include "check/pe_check.h"

namespace dpuemu {
namespace {

std::string hexadecimal_of(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string bracketed(const std::string &text) { return text.empty() ? "" : " (" + text + ")"; }

}  // namespace

void PeCheck::race(FindingKind kind, const Cell &cell, const CellAccess &access, bool is_write,
                   Epoch epoch, PlaceWord place, bool was_write, const char *detail) {
  const uint32_t other = thread_of(epoch), own = thread_of(access.epoch);
  if (other == kHostThread || own == kHostThread) kind = FindingKind::kHost;
  if (kind == FindingKind::kHost && ((place | access.place) & kVolatilePlace) != 0) return;
  const auto act = [](bool writes, PlaceWord at) {
    return std::string((at & kDmaPlace) != 0 ? (writes ? "writes it by DMA" : "reads it by DMA")
                                             : (writes ? "writes it" : "reads it"));
  };
  report(kind, access.place, place, [&] {
    return Finding{.object = name_of(cell),
                   .now = side(own, act(is_write, access.place), access.place),
                   .before = side(other, act(was_write, place), place),
                   .detail = detail};
  });
}

Side PeCheck::side(uint32_t tasklet, const std::string &act, PlaceWord place) const {
  if (tasklet == kHostThread) return {"the host " + act};
  return {"tasklet " + std::to_string(tasklet) + " " + act, function_at(place & kTextMask),
          static_cast<int>(tasklet)};
}

std::string PeCheck::function_at(uint32_t place) const {
  // The place is a return address, after the call.
  return place == 0 ? "" : program_->function_at(PE_TEXT_ORIGIN + place - 1);
}

std::string PeCheck::name_of(const Cell &cell) const {
  return cell.is_mram ? mram_name(cell.address) : wram_name(cell.address);
}

std::string PeCheck::wram_name(uint32_t at) const {
  const CheckedMemory::Object *const object = memory_->object_at(at);
  const std::string name =
      object != nullptr && object->place != 0
          ? "byte " + std::to_string(at - object->begin) + " of a block of the heap"
          : program_->variable_at(at);
  return "WRAM address " + hexadecimal_of(at) + bracketed(name);
}

std::string PeCheck::mram_name(uint32_t offset) const {
  return "MRAM address " + hexadecimal_of(offset) +
         bracketed(program_->variable_at(PE_MRAM_ORIGIN + offset));
}

std::string PeCheck::mutex_name(uint32_t number) const {
  return "mutex " + std::to_string(number) +
         bracketed(program_->variable_at(PE_ATOMIC_ORIGIN + number));
}

}  // namespace dpuemu
