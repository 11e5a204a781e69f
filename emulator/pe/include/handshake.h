/// handshake.h: one tasklet waits for one other.
#ifndef PE_HANDSHAKE_H
#define PE_HANDSHAKE_H

#include <sysdef.h>

/// Waits until another tasklet waits for this one, then lets both go on.
void handshake_notify(void);

/// Waits for the tasklet `notifier` to notify, and returns 0. Returns EALREADY (errno.h) at once, and sets errno to it, if another tasklet
/// already waits for that one. Undefined if notifier is the caller or no tasklet of the program.
int handshake_wait_for(sysname_t notifier) __asm__("__pe_handshake_wait_for");

#endif  // PE_HANDSHAKE_H
