/// barrier.h: reusable barriers for a fixed number of tasklets.
#ifndef PE_BARRIER_H
#define PE_BARRIER_H

#include <atomic_bit.h>
#include <attributes.h>
#include <stdint.h>

/// A program may also set the fields directly: to 0xFF, the number of tasklets (twice) and the
/// address of a lock. Differs from the SDK: `lock` has no effect; BARRIER_INIT sets `lock` to 0.
typedef struct barrier_t {
  uint8_t wait_queue;     // number of the last waiting tasklet, 0xFF if no tasklet waits
  uint8_t count;          // number of tasklets that have not arrived yet
  uint8_t initial_count;  // number of tasklets that wait for each other
  uint8_t lock;
} barrier_t;

/// Defines the barrier _name for _counter tasklets, and takes one of the mutexes of the chip, as on
/// hardware.
#define BARRIER_INIT(_name, _counter)                                         \
  _Static_assert((_counter) < 128 && (_counter) >= -127,                      \
                 "the number of tasklets of a barrier must fit into a byte"); \
  ATOMIC_BIT_INIT(__CONCAT(barrier_, _name));                                 \
  barrier_t _name = {0xFF, (uint8_t)(_counter), (uint8_t)(_counter), 0};

/// Waits until initial_count tasklets have called barrier_wait, then resumes these tasklets and
/// resets the barrier.
void barrier_wait(barrier_t *barrier);

#endif  // PE_BARRIER_H
