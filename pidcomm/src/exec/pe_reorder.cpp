#include "exec/pe_reorder.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/bits.h"
#include "base/error.h"
#include "exec/clock.h"
#include "exec/device.h"
#include "exec/prepared_transfer.h"
#include "pe/reorder.h"

// The compiled PE program, embedded in the library.
__asm__(
    ".pushsection .rodata\n"
    ".balign 64\n"
    ".hidden pidcomm_reorder_program\n.global pidcomm_reorder_program\npidcomm_reorder_program:\n"
    ".incbin \"" PIDCOMM_REORDER_PROGRAM
    "\"\n"
    ".hidden pidcomm_reorder_program_end\n.global "
    "pidcomm_reorder_program_end\npidcomm_reorder_program_end:\n"
    ".popsection\n");
extern "C" const uint8_t pidcomm_reorder_program[], pidcomm_reorder_program_end[];

namespace pidcomm {

namespace {

/// Returns the program, changed so that its MRAM heap starts at an address. The SDK reads the heap
/// address from the symbol table of the program. The program does not use its heap.
std::vector<uint8_t> program_with_heap_at(uint32_t address) {
  std::vector<uint8_t> file(pidcomm_reorder_program, pidcomm_reorder_program_end);
  const auto at = [&file](uint64_t offset, uint64_t bytes) {
    if (offset > file.size() || bytes > file.size() - offset)
      fail(PIDCOMM_ERR_INTERNAL, "the reorder program is truncated");
    return file.data() + offset;
  };
  Elf32_Ehdr header;
  std::memcpy(&header, at(0, sizeof header), sizeof header);
  std::vector<Elf32_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), at(header.e_shoff, sections.size() * sizeof(Elf32_Shdr)),
              sections.size() * sizeof(Elf32_Shdr));
  for (const Elf32_Shdr &section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const Elf32_Shdr &names = sections[section.sh_link];
    for (uint32_t offset = 0; offset + sizeof(Elf32_Sym) <= section.sh_size;
         offset += sizeof(Elf32_Sym)) {
      uint8_t *const place = at(section.sh_offset + offset, sizeof(Elf32_Sym));
      Elf32_Sym symbol;
      std::memcpy(&symbol, place, sizeof symbol);
      constexpr std::size_t kNameBytes = sizeof DPU_MRAM_HEAP_POINTER_NAME;
      if (symbol.st_name + kNameBytes > names.sh_size) continue;
      if (std::memcmp(at(names.sh_offset + symbol.st_name, kNameBytes), DPU_MRAM_HEAP_POINTER_NAME,
                      kNameBytes) != 0)
        continue;
      symbol.st_value = address;
      std::memcpy(place, &symbol, sizeof symbol);
      return file;
    }
  }
  fail(PIDCOMM_ERR_INTERNAL, "the reorder program has no symbol ", DPU_MRAM_HEAP_POINTER_NAME);
}

void load(struct dpu_set_t set, uint64_t heap_base) {
  std::vector<uint8_t> program =
      program_with_heap_at(kMramAddress + static_cast<uint32_t>(heap_base));
  check_device(dpu_load_from_memory(set, program.data(), program.size(), nullptr),
               "loading the reorder program (no window has changed; some PEs may have lost their "
               "own program)");
}

/// A DPU outside the hypercube. Its heap base is another one than the heap base of the hypercube.
struct OtherHeap {
  struct dpu_set_t dpu;
  uint64_t base;
};

std::vector<OtherHeap> other_heaps(struct dpu_set_t set, uint64_t heap_base) {
  std::vector<OtherHeap> others;
  struct dpu_set_t dpu;
  DPU_FOREACH(set, dpu) {
    const uint64_t base = heap_base_of(dpu_get_program(dpu_from_set(dpu)));
    if (base != heap_base) others.push_back({dpu, base});
  }
  return others;
}

/// Finds the job in the reorder program. Returns false if the DPU has another program, or none.
bool find_job(struct dpu_t *dpu, struct dpu_symbol_t &job) {
  struct dpu_program_t *const program = dpu_get_program(dpu);
  return program != nullptr && dpu_get_symbol(program, PIDCOMM_REORDER_JOB, &job) == DPU_OK;
}

/// Moves jobs between the host and the DPUs of the set. The caller holds a PreparedTransfer. jobs:
/// one for each PE, then one for all DPUs that are not PEs of the hypercube.
void transfer_jobs(dpu_xfer_t direction, struct dpu_set_t set, const Placement &placement,
                   std::span<pidcomm_reorder_job> jobs) {
  if (direction == DPU_XFER_TO_DPU)
    check_device(dpu_prepare_xfer(set, &jobs.back()), "preparing a transfer");
  for (std::size_t pe = 0; pe < placement.dpus.size(); ++pe)
    check_device(dpu_prepare_xfer(dpu_set_from_dpu(placement.dpus[pe]), &jobs[pe]),
                 "preparing a transfer");
  struct dpu_symbol_t job{};  // by place: the SDK finds a name only if all DPUs have one program
  if (!find_job(placement.dpus.front(), job))
    fail(PIDCOMM_ERR_DEVICE, "the reorder program has been replaced during the call");
  check_device(
      dpu_push_xfer_symbol(set, direction, job, 0, sizeof(pidcomm_reorder_job), DPU_XFER_DEFAULT),
      "exchanging jobs with the reorder program");
}

}  // namespace

bool has_reorder_program(struct dpu_t *dpu) {
  struct dpu_symbol_t job;
  return find_job(dpu, job);
}

PeReorder::PeReorder(struct dpu_set_t set, const Placement &placement, uint64_t heap_base,
                     pidcomm_trace &trace)
    : set_(set), placement_(placement) {
  const PreparedTransfer transfer(
      set, placement);  // no other hypercube can load or launch the program while this lock is held
  bool is_loaded = true;
  struct dpu_set_t dpu;
  DPU_FOREACH(set, dpu) is_loaded = is_loaded && has_reorder_program(dpu_from_set(dpu));
  if (is_loaded) return;
  const Stopwatch loading;
  const std::vector<OtherHeap> others = other_heaps(set, heap_base);
  load(set, heap_base);
  for (const OtherHeap &other : others) load(other.dpu, other.base);
  trace.pe_loads += 1;
  trace.seconds_load += loading.seconds("load");
}

void PeReorder::run(const Reorder &reorder, pidcomm_trace &trace) const {
  if (reorder.from == reorder.to && !reorder.backwards)
    fail(PIDCOMM_ERR_INTERNAL, "blocks reordered forwards in place");
  const Stopwatch reordering;
  std::vector<pidcomm_reorder_job> jobs(placement_.dpus.size() + 1);
  const uint32_t ways = 1u << reorder.k;
  const pidcomm_reorder_job nothing = {.from = static_cast<uint32_t>(kMramAddress + reorder.from),
                                       .to = static_cast<uint32_t>(kMramAddress + reorder.to),
                                       .block_bytes = static_cast<uint32_t>(reorder.block_bytes),
                                       .parts = 0,
                                       .ways = ways,
                                       .first = 0,
                                       .step = reorder.backwards ? ways - 1 : 1,
                                       .is_armed = 1,
                                       .cycles = 0,
                                       .cycles_per_second = 0};
  std::fill(jobs.begin(), jobs.end(), nothing);
  for (uint32_t pe = 0; pe < placement_.dpus.size(); ++pe) {
    jobs[pe].parts = static_cast<uint32_t>(reorder.parts);
    jobs[pe].first = extract_bits(placement_.lane_of(pe), reorder.lane_mask);
  }
  {
    const PreparedTransfer transfer(set_, placement_);
    transfer_jobs(DPU_XFER_TO_DPU, set_, placement_, jobs);
    const Stopwatch launch;
    const dpu_error_t status = dpu_launch(set_, DPU_SYNCHRONOUS);
    trace.pe_launches += 1;
    check_device(status, "reordering blocks in the PEs");
    transfer_jobs(DPU_XFER_FROM_DPU, set_, placement_,
                  jobs);  // reads the cycles; not part of the technique
    trace.seconds_launch += launch.seconds("launch");
  }
  const auto slowest = std::max_element(
      jobs.begin(), jobs.end() - 1, [](const pidcomm_reorder_job &a, const pidcomm_reorder_job &b) {
        return a.cycles < b.cycles;
      });
  trace.pe_cycles += slowest->cycles;
  // The SDK stores the clock in the variable CLOCKS_PER_SEC when it loads the program.
  if (slowest->cycles_per_second != 0)
    trace.pe_seconds +=
        static_cast<double>(slowest->cycles) / static_cast<double>(slowest->cycles_per_second);
  trace.pe_bytes += 2 * reorder.bytes() * placement_.dpus.size();
  trace.seconds_reorder += reordering.seconds("reorder");
}

}  // namespace pidcomm
