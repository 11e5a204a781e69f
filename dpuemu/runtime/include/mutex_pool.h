/// mutex_pool.h: a few mutexes that guard many objects. Objects whose numbers have equal low bits
/// share a mutex.
#ifndef PE_MUTEX_POOL_H
#define PE_MUTEX_POOL_H

#include <assert.h>
#include <mutex.h>
#include <stdint.h>

struct mutex_pool {
  uint8_t *hw_mutexes;
  uint8_t hw_mutexes_mask;  // number of mutexes - 1
};

/// Defines the pool NAME of NB_MUTEXES (a power of two) mutexes.
#define MUTEX_POOL_INIT(NAME, NB_MUTEXES)                                   \
  _Static_assert((NB_MUTEXES) > 0, "a pool needs at least one mutex");      \
  _Static_assert(((NB_MUTEXES) & ((NB_MUTEXES) - 1)) == 0,                  \
                 "the number of mutexes of a pool must be a power of two"); \
  uint8_t __atomic_bit hw_mutexes_##NAME[NB_MUTEXES] = {0};                 \
  struct mutex_pool NAME = {.hw_mutexes = hw_mutexes_##NAME, .hw_mutexes_mask = (NB_MUTEXES) - 1};

/// Lock and unlock the mutex of object number id.
static inline void mutex_pool_lock(struct mutex_pool *mp, uint16_t id) {
  mutex_lock(&mp->hw_mutexes[id & mp->hw_mutexes_mask]);
}
static inline void mutex_pool_unlock(struct mutex_pool *mp, uint16_t id) {
  mutex_unlock(&mp->hw_mutexes[id & mp->hw_mutexes_mask]);
}

#endif  // PE_MUTEX_POOL_H
