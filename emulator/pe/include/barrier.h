/// barrier.h: a fixed number of tasklets wait for each other, again and again.
#ifndef PE_BARRIER_H
#define PE_BARRIER_H

#include <atomic_bit.h>
#include <attributes.h>
#include <stdint.h>

/// Programs may also fill one by hand: 0xFF, the number of tasklets twice, the address of a lock.
/// Differs from the SDK: `lock` is without meaning here, BARRIER_INIT leaves it 0.
typedef struct barrier_t {
  uint8_t wait_queue;     // the last tasklet that waits, 0xFF if none does
  uint8_t count;          // how many tasklets are still missing
  uint8_t initial_count;  // how many tasklets meet here
  uint8_t lock;
} barrier_t;

/// Defines the barrier _name for _counter tasklets, and takes one of the 256 locks as on hardware.
#define BARRIER_INIT(_name, _counter)                                                                                 \
  _Static_assert((_counter) < 128 && (_counter) >= -127, "the number of tasklets of a barrier must fit into a byte"); \
  ATOMIC_BIT_INIT(__CONCAT(barrier_, _name));                                                                         \
  barrier_t _name = {0xFF, (uint8_t)(_counter), (uint8_t)(_counter), 0};

/// Waits until initial_count tasklets have called this, then lets all of them go on and starts over.
void barrier_wait(barrier_t *barrier);

#endif  // PE_BARRIER_H
