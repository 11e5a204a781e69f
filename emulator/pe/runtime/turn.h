// The modelled time of the allocators.
#ifndef PE_TURN_H
#define PE_TURN_H

// Returns when no other tasklet is behind in modelled time. On a DPU, the lock of an allocator has this effect.
void __pe_turn(void);

#endif
