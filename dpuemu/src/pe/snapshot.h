// The memory of a PE before a run, so that the run can be repeated. MRAM is saved page by page,
// before the first write to a page.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "machine/pe.h"
#include "pe/mram_port.h"

namespace dpuemu {

class PeSnapshot {
 public:
  PeSnapshot(Pe &pe, const PePlace &place, const MramPort &port);

  /// Call this function before each write to MRAM.
  void before_write(uint64_t offset, uint64_t bytes);
  /// Restores the memory.
  void restore();
  /// Saves the result of the last run, and makes it the state of the PE again.
  void save_result();
  void restore_result();
  /// Returns a hash of what the host may read: variables in .dpu_host, MRAM, and whether the PE is
  /// in fault.
  uint64_t result() const;

 private:
  struct State {
    std::vector<uint8_t> wram, locks;
    std::unordered_map<uint64_t, std::vector<uint8_t>> mram;  // by page
    std::string log;
    PeReport report;
    PeFault fault;
  };
  void save(State &state);
  void put(const State &state);

  Pe &pe_;
  PePlace place_;
  MramPort port_;
  State before_, after_;
};

}  // namespace dpuemu
