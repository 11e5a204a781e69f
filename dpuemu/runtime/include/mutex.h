/// mutex.h: mutual exclusion of tasklets.
///
/// Differs from the SDK: the functions are calls into the emulator. While one tasklet waits for a
/// mutex, other tasklets run.
#ifndef PE_MUTEX_H
#define PE_MUTEX_H

#include <atomic_bit.h>
#include <stdbool.h>
#include <stdint.h>
#include <sysdef.h>

/// The address of a lock (atomic_bit.h). Mutexes are not recursive.
typedef uint8_t *mutex_id_t;

#define MUTEX_GET(_name) _name

/// Defines the mutex _name, which is unlocked at the start.
#define MUTEX_INIT(_name)                   \
  ATOMIC_BIT_INIT(__CONCAT(mutex_, _name)); \
  const mutex_id_t MUTEX_GET(_name) = &ATOMIC_BIT_GET(__CONCAT(mutex_, _name))

/// Waits until the mutex is free, then takes the mutex.
void mutex_lock(mutex_id_t mutex);

/// Takes the mutex if it is free. Returns whether the caller has taken the mutex.
bool mutex_trylock(mutex_id_t mutex);

/// Frees the mutex, even if another tasklet holds it.
void mutex_unlock(mutex_id_t mutex);

#endif  // PE_MUTEX_H
