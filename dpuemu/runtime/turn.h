// The lock of the allocators.
#ifndef PE_TURN_H
#define PE_TURN_H

// Returns when no other tasklet is behind in modelled time and none holds the lock, which the
// caller then holds. The instructions of locking and unlocking are in the cost of __pe_turn.
void __pe_lock_heap(void);

static inline void unlock_heap(void) { __asm__ volatile("movb $0, __pe_heap_lock" : : : "memory"); }

#endif
