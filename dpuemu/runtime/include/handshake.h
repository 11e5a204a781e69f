/// handshake.h: one tasklet waits for another tasklet.
#ifndef PE_HANDSHAKE_H
#define PE_HANDSHAKE_H

#include <sysdef.h>

/// Waits until another tasklet waits for the calling tasklet, then resumes both tasklets.
void handshake_notify(void);

/// Waits until the tasklet `notifier` calls handshake_notify, and returns 0. If another tasklet
/// already waits for `notifier`, sets errno to EALREADY and returns EALREADY immediately. The
/// effect is undefined if notifier is the caller or not a tasklet of the program.
int handshake_wait_for(sysname_t notifier) __asm__("__pe_handshake_wait_for");

#endif  // PE_HANDSHAKE_H
