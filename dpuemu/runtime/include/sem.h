/// sem.h: counting semaphores.
#ifndef PE_SEM_H
#define PE_SEM_H

#include <atomic_bit.h>
#include <attributes.h>
#include <stdint.h>

/// Differs from the SDK: `lock` has no effect; SEMAPHORE_INIT sets `lock` to 0.
typedef struct sem_t {
  uint8_t wait_queue;  // number of the last waiting tasklet, 0xFF if no tasklet waits
  uint8_t count;       // signed number of units left; if negative, the number of waiting tasklets
  uint8_t initial_count;  // number of units at the start
  uint8_t lock;
} sem_t;

/// Defines the semaphore _name with _counter units, and takes one of the mutexes of the chip, as on
/// hardware.
#define SEMAPHORE_INIT(_name, _counter)                                      \
  _Static_assert((_counter) < 128 && (_counter) >= -127,                     \
                 "the number of units of a semaphore must fit into a byte"); \
  ATOMIC_BIT_INIT(__CONCAT(semaphore_, _name));                              \
  sem_t _name = {0xFF, (uint8_t)(_counter), (uint8_t)(_counter), 0};

/// Takes a unit; if no unit is left, waits for a unit.
void sem_take(sem_t *sem);

/// Gives a unit back and wakes the first tasklet that waits for a unit.
void sem_give(sem_t *sem);

#endif  // PE_SEM_H
