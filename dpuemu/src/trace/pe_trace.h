// The trace of one run of a PE: spans of tasklets and of the DMA engine, and the use of the
// pipeline and of the engine over time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "machine/pe_observer.h"
#include "trace/trace.h"

namespace dpuemu {

/// How busy the pipeline and the DMA engine are over time, in kBins parts of equal length.
class PeUse {
 public:
  static constexpr size_t kBins = 128;
  using Bins = std::array<double, kBins>;

  void clear();
  void add_instructions(double begin, double end, double count) {
    add(pipeline_, begin, end, count);
  }
  void add_transfer(double begin, double end) { add(engine_, begin, end, end - begin); }
  /// Calls act(begin, end, pipeline, engine) for each part until `end`: times, and shares of the
  /// part in which they are busy.
  template <class Act>
  void for_each(double end, Act act) const {
    for (size_t i = 0; i < kBins && width_ * static_cast<double>(i) < end; ++i) {
      const double begin = width_ * static_cast<double>(i), length = std::min(width_, end - begin);
      act(begin, begin + length, std::min(pipeline_[i] / length, 1.0),
          std::min(engine_[i] / length, 1.0));
    }
  }

 private:
  void add(Bins &bins, double begin, double end, double amount);

  static constexpr double kLeastWidth = 1024;  // cycles
  double width_ = kLeastWidth;
  Bins pipeline_ = {}, engine_ = {};
};

class PeTrace final : public PeObserver {
 public:
  /// Call this function before begin(). number: of the PE.
  void set(std::shared_ptr<TracedLaunch> launch, uint32_t number);

  void begin(const Program &program, const PePlace &place) override;
  void start(uint32_t tasklet, double now, uint64_t instructions) override;
  void pause(uint32_t tasklet, double now) override;
  void call(uint32_t tasklet, uint32_t place, uint32_t) override { tasklets_[tasklet].at = place; }
  void wait(uint32_t tasklet, Wait what, double now) override;
  void wait_for_dma(uint32_t tasklet, double now, const Dma &dma) override;
  void resume(uint32_t tasklet, double now, uint64_t) override;
  void end_tasklet(uint32_t tasklet, double now) override;
  void read_counter(uint32_t tasklet, double now, uint64_t value) override;
  void begin_region(uint32_t tasklet, double now, uint32_t name) override;
  void end_region(uint32_t tasklet, double now) override;
  void end(const PeReport &report) override;

 private:
  /// kWait + the Wait; kRead and kWrite are waits for a DMA.
  enum Kind : uint8_t { kRun, kRegion, kCounter, kRead, kWrite, kWait };
  struct Event {
    double begin, end;
    uint64_t value;  // bytes of a DMA, name of a region, value of the counter
    uint32_t at;     // place in the program, or 0
    uint8_t row;
    uint8_t kind;
  };
  struct Tasklet {
    double begin = 0, computes_since = 0, waits_since = 0;
    uint64_t instructions = 0;  // of the computation
    uint64_t dma_bytes = 0;
    uint32_t at = 0;  // the place of the last call
    bool runs = false, computes = false, waits = false;
    Kind waits_for = kWait;
    std::vector<std::pair<double, uint32_t>> regions;  // open ones: begin and name
  };

  /// Adds a wait, DMA, counter or region, while memory for the formatted bytes is left.
  void add(std::vector<Event> &events, const Event &event);
  /// Drops an event and those that end later.
  void drop(const Event &first, uint64_t events);
  /// Returns the time of the trace, in ns, of a time of the run, which takes `cycles`.
  uint64_t at(double time, double cycles) const;
  void write(double cycles);
  /// Appends the first events that fit into `bytes` bytes; returns their number.
  size_t append_all(std::string &lines, const std::vector<Event> &events, uint64_t bytes,
                    double cycles);
  void append(std::string &lines, const Event &event, double cycles);
  /// Returns the function and line of a place, quoted.
  const std::string &place_of(uint32_t place);
  std::string name_of(const Event &event) const;

  std::shared_ptr<TracedLaunch> launch_;
  uint32_t number_ = 0;
  const Program *program_ = nullptr;
  std::unordered_map<uint32_t, std::string> places_;  // of program_
  std::array<Tasklet, PE_MAX_TASKLETS> tasklets_;
  std::vector<Event> runs_, regions_, events_;  // each in the order of their ends
  uint64_t dropped_ = 0;
  double complete_until_ = 0;  // events that end later may be missing
  PeUse use_;
};

}  // namespace dpuemu
