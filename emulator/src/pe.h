// What a PE keeps between launches besides its memories: the program, what it printed, and how its last run went.
#pragma once

#include <cstdint>
#include <string>

#include "pe/calls.h"
#include "program.h"

namespace dpuemu {

/// Why a PE stopped before its program ended.
enum class FaultKind : uint8_t {
  kNone,
  kMemory,       // an address that is not the PE's
  kStack,        // the stack overflowed
  kDivision,     // by zero
  kInstruction,  // none that exists
  kDma,          // a DMA out of WRAM, or one that strict mode refuses
  kMutex,        // no mutex, or not locked
  kFormat,       // printf with what it cannot print
  kDeadlock,
  kEndless,  // no waiting point for too long
  kStopped,  // by the host, or for lack of its memory
  kProgram,  // the program itself said so (PE_FAULT_TABLE)
};

struct PeFault {
  FaultKind kind = FaultKind::kNone;
  uint32_t tasklet = 0;
  std::string reason;  // a part of a sentence
};

/// Of one run. DMA is counted, time is modelled.
struct PeReport {
  uint64_t dma_reads = 0, dma_read_bytes = 0, dma_writes = 0, dma_write_bytes = 0;
  uint64_t masked_addresses = 0, masked_sizes = 0, wrapped_addresses = 0, direct_pages = 0;
  uint64_t instructions = 0;
  double cycles = 0;
};

struct Pe {
  const Program *program = nullptr;  // loaded now
  const Program *text = nullptr;     // whose text lies in the PE's place
  bool has_wram = false;             // its WRAM is accessible
  bool has_run = false;              // since dpu_alloc
  std::string log;                   // printed and not yet read
  bool log_is_cut = false;           // more was printed than the log holds
  PeReport report;
  PeFault fault;
};

}  // namespace dpuemu
