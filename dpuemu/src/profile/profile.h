// The profiles of `dpuemu profile`: per program, the modelled instructions and waiting times of all
// PEs by source line. They are on if the variable DPUEMU_PROFILE names a folder, to which each
// process writes the file PID.json: after launches now and then, and at its end. Runs with checks
// have no profile.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "machine/pe_observer.h"

namespace dpuemu {

/// Returns whether profiles are on.
bool profile_is_on();

/// The profile of one run of a PE. All times are modelled cycles.
class PeProfile final : public PeObserver {
 public:
  /// What the calls at one place of the text have done.
  struct Place {
    uint64_t instructions = 0;  // of the calls, without `repeated`
    uint64_t repeated = 0;      // instructions, by waiting for a mutex
    uint64_t dma_bytes = 0;
    std::array<double, kWaits> waited = {};        // by Wait
    std::array<uint64_t, kWaits> unfinished = {};  // waits that lasted until the end of the run
    void add(const Place &other);
  };

  /// Requires a program without machine code, and accessible counters.
  void begin(const Program &program, const PePlace &place) override;
  void start(uint32_t tasklet, double now, uint64_t) override { since_[tasklet] = now; }
  void pause(uint32_t tasklet, double now) override { computing_cycles_ += now - since_[tasklet]; }
  void call(uint32_t tasklet, uint32_t place, uint32_t instructions) override;
  void wait(uint32_t tasklet, Wait what, double now) override;
  void wait_for_dma(uint32_t tasklet, double now, const Dma &dma) override;
  void resume(uint32_t tasklet, double now, uint64_t instructions) override;
  /// Adds the profile to the profile of the program.
  void end(const PeReport &report) override;
  bool is_counting(uint64_t address) const override;

 private:
  const Program *program_ = nullptr;
  PePlace place_ = {};
  double computing_cycles_ = 0, engine_cycles_ = 0;
  std::unordered_map<uint32_t, Place> places_;
  Place *at_[PE_MAX_TASKLETS] = {};  // of the tasklet's last call
  double since_[PE_MAX_TASKLETS] = {};
  Wait waits_for_[PE_MAX_TASKLETS] = {};
  uint32_t waiting_ = 0;  // bit set
};

/// Names the program in the file of profiles. name: that the host program gave; file: the bytes of
/// its program file.
void name_program(const Program &program, const char *name, std::string_view file);

/// Notes the end of a launch of these PEs, which have a program.
void note_profiled_launch(const std::vector<const Pe *> &pes);

}  // namespace dpuemu
