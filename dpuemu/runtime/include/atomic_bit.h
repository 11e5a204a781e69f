/// atomic_bit.h: declares single locks by name. Each mutex, barrier and semaphore takes one lock.
#ifndef PE_ATOMIC_BIT_H
#define PE_ATOMIC_BIT_H

#include <attributes.h>
#include <macro_utils.h>
#include <stdint.h>

/// Declares the object behind a lock. ATOMIC_BIT_INIT(name)[n] declares n such objects.
#define ATOMIC_BIT_GET(_name) __CONCAT(__atomic_bit_, _name)
#define ATOMIC_BIT_INIT(_name) uint8_t __atomic_bit ATOMIC_BIT_GET(_name)
#define ATOMIC_BIT_EXTERN(_name) extern ATOMIC_BIT_INIT(_name)

/// The number of a lock, 0 to 255. All locks are in one block of 256 bytes, which is aligned to 256
/// bytes.
#define ATOMIC_BIT_INDEX(_name) ((uintptr_t)&ATOMIC_BIT_GET(_name) % DPU_NR_ATOMIC_BITS)

/// Do the same as mutex_lock and mutex_unlock, under names that programs do not use.
void __pe_lock(uint8_t *bit) __asm__("mutex_lock");
void __pe_unlock(uint8_t *bit) __asm__("mutex_unlock");

/// Differs from the SDK: _reg + _bit must be the address of a lock; the number of a bit does not
/// work.
#define __ATOMIC_BIT_ACQUIRE(_reg, _bit) \
  __pe_lock((uint8_t *)((uintptr_t)(_reg) + (uintptr_t)(_bit)))
#define __ATOMIC_BIT_RELEASE(_reg, _bit) \
  __pe_unlock((uint8_t *)((uintptr_t)(_reg) + (uintptr_t)(_bit)))

#define ATOMIC_BIT_ACQUIRE(_name) __pe_lock(&ATOMIC_BIT_GET(_name))
#define ATOMIC_BIT_RELEASE(_name) __pe_unlock(&ATOMIC_BIT_GET(_name))

#endif  // PE_ATOMIC_BIT_H
