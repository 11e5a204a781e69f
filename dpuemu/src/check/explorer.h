// Chooses different orders of the steps of tasklets, for `dpuemu check --schedules`. Two orders are
// the same if they order all steps in the same way of which one writes what the other uses. Such
// orders are not tried twice: after each run, the explorer adds the orders in which one pair of
// such steps comes the other way round (dynamic partial-order reduction, Flanagan and Godefroid
// 2005).
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "runtime/calls.h"

namespace dpuemu {

class Explorer {
 public:
  explicit Explorer(uint64_t seed) : random_(seed) {}

  /// What a step uses: a cell of memory, or a lock.
  struct Object {
    uint64_t id;
    bool is_written;
    bool is_reversible;  // whether the step may come before an earlier step that uses the object
  };

  /// Begins the next order, chosen by the seed. Returns false if all orders have been tried.
  bool begin();
  /// Returns the tasklet of `ready` (a bit set, not empty) that makes the next step.
  uint32_t choose(uint32_t ready);
  /// The tasklet of the last choose() uses these objects in its step.
  void note(const Object &object) { objects_.push_back(object); }
  /// The step lets `tasklet` continue after a wait.
  void note_wake(uint32_t tasklet) { note({kWake | tasklet, false, false}); }
  /// The tasklet waits for another one: others shall make a step first.
  void note_waiting(uint32_t tasklet) { waiting_ |= 1u << tasklet; }
  /// Ends the order, and adds orders to try.
  void end();
  /// Forgets all orders, because steps have become visible that were not.
  void restart();

  uint64_t tried() const { return tried_; }
  uint64_t remaining() const { return waiting_orders_.size(); }

 private:
  static constexpr uint64_t kWake = UINT64_C(1) << 63;
  struct Step {
    uint8_t tasklet;
    uint32_t ready;
    uint32_t first_object;
  };
  /// The steps of a run up to `length`, then one of `tasklet`.
  struct Order {
    std::shared_ptr<const std::vector<uint8_t>> choices;
    uint32_t length;
    uint8_t tasklet;
  };
  uint64_t next_random();
  void add(const std::shared_ptr<const std::vector<uint8_t>> &choices, uint32_t place,
           uint32_t tasklet);

  uint64_t random_;
  Order order_ = {};
  bool is_first_ = true;
  std::vector<Step> steps_;
  std::vector<Object> objects_;     // of the steps, in order
  std::vector<uint64_t> prefixes_;  // of each step: a hash of the partial order before it
  uint32_t waiting_ = 0;
  std::vector<Order> waiting_orders_;
  std::unordered_set<uint64_t> seen_;  // prefix and next tasklet
  uint64_t tried_ = 0;
};

}  // namespace dpuemu
