// The sentences of findings.
#include "check/pe_check.h"

namespace dpuemu {
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
  if (object == nullptr || object->place == 0)
    return "WRAM address " + program_->address_and_variable(at, at);
  return "WRAM address " + hexadecimal(at) + " (byte " + std::to_string(at - object->begin) +
         " of a block of the heap)";
}

std::string PeCheck::mram_name(uint32_t offset) const {
  return "MRAM address " + program_->address_and_variable(offset, PE_MRAM_ORIGIN + offset);
}

std::string PeCheck::mutex_name(const Mutex &mutex) const {
  if (mutex.kind == Lock::kVirtualMutex)
    return "a virtual mutex: bit " + std::to_string(mutex.number % 8) + " of " +
           wram_name(mutex.number / 8);
  const std::string name = program_->variable_at(PE_ATOMIC_ORIGIN + mutex.number);
  return "mutex " + std::to_string(mutex.number) + (name.empty() ? "" : " (" + name + ")");
}

void PeCheck::note_host_read(const Pe &pe, uint32_t rank, uint32_t dpu_index, uint64_t offset,
                             uint64_t bytes) {
  for (const CheckedMemory::Sent &sent : pe.checked->take_sent(offset, bytes))
    note_finding({.kind = FindingKind::kUninitialised,
                  .pe = pe_name(rank, dpu_index),
                  .object = "MRAM address " + sent.program->address_and_variable(
                                                  sent.offset, PE_MRAM_ORIGIN + sent.offset),
                  .now = {"the host reads it"},
                  .before = {"tasklet " + std::to_string(sent.tasklet) +
                                 " sent it from WRAM that nothing has written",
                             sent.program->function_at(PE_TEXT_ORIGIN + sent.place - 1),
                             static_cast<int>(sent.tasklet)}});
}

}  // namespace dpuemu
