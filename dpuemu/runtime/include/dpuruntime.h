/// dpuruntime.h: internal names of the runtime that a few programs use.
///
/// Differs from the SDK: there are no tables of stacks and wait queues, and tasklets cannot be
/// stopped or resumed.
#ifndef PE_DPURUNTIME_H
#define PE_DPURUNTIME_H

#include <atomic_bit.h>
#include <built_ins.h>
#include <dpuconst.h>
#include <dpufault.h>
#include <macro_utils.h>
#include <stdint.h>

#define __INITIAL_HEAP_POINTER __sys_heap_pointer_reset
#define __HEAP_POINTER __sys_heap_pointer
#define __HEAP_POINTER_END __sys_wram_end

/// The addresses of the first two symbols are the bounds of the heap. The third symbol is a
/// variable that holds an address.
extern unsigned int __INITIAL_HEAP_POINTER;
extern const unsigned int __HEAP_POINTER_END;
extern volatile unsigned int __HEAP_POINTER;

/// The address of a lock is base + off.
#define __acquire(base, off) __ATOMIC_BIT_ACQUIRE(base, off)
#define __release(base, off, at) __ATOMIC_BIT_RELEASE(base, off)

#define __resume(base, off) \
  _Static_assert(0, "tasklets cannot be resumed by hand: there is no such instruction here")
#define __stop() \
  _Static_assert(0, "tasklets cannot be stopped by hand: there is no such instruction here")
#define __stop_at(label) \
  _Static_assert(0, "tasklets cannot be stopped by hand: there is no such instruction here")

#define likely(x) __builtin_expect((x), 1)
#define unlikely(x) __builtin_expect((x), 0)
#define unreachable() __builtin_unreachable()

#define count_leading_zeros(x) __builtin_clz(x)
#define count_population(x) __builtin_popcount(x)

#define __EMPTY_WAIT_QUEUE 0xFF

#endif  // PE_DPURUNTIME_H
