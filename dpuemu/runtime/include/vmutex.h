/// vmutex.h: any number of one-bit mutexes in WRAM. A few real mutexes guard the bits.
#ifndef PE_VMUTEX_H
#define PE_VMUTEX_H

#include <assert.h>
#include <mutex.h>
#include <stdint.h>

struct vmutex {
  uint8_t *vm;              // bit id & 7 of byte id >> 3 is set if mutex id is taken
  uint8_t *hw_mutexes;      // mutex (id >> 3) & hw_mutexes_mask guards byte id >> 3
  uint8_t hw_mutexes_mask;  // number of real mutexes - 1
};

/// Defines NAME: NB_VMUTEXES (a multiple of 8) one-bit mutexes guarded by NB_MUTEXES (a power of
/// two) real mutexes.
#define VMUTEX_INIT(NAME, NB_VMUTEXES, NB_MUTEXES)                                      \
  _Static_assert((NB_MUTEXES) > 0, "virtual mutexes need at least one hardware mutex"); \
  _Static_assert(((NB_MUTEXES) & ((NB_MUTEXES) - 1)) == 0,                              \
                 "the number of hardware mutexes must be a power of two");              \
  _Static_assert(((NB_VMUTEXES) & 7) == 0,                                              \
                 "the number of virtual mutexes must be a multiple of 8");              \
  uint8_t __atomic_bit hw_mutexes_##NAME[NB_MUTEXES] = {0};                             \
  uint8_t vmutex_##NAME[(NB_VMUTEXES) >> 3] = {0};                                      \
  struct vmutex NAME = {                                                                \
      .vm = vmutex_##NAME, .hw_mutexes = hw_mutexes_##NAME, .hw_mutexes_mask = (NB_MUTEXES) - 1};

/// Waits until mutex number id is free, then takes the mutex.
void vmutex_lock(struct vmutex *vm, uint16_t id);

/// Frees mutex number id, even if another tasklet holds it.
void vmutex_unlock(struct vmutex *vm, uint16_t id);

#endif  // PE_VMUTEX_H
