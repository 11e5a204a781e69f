#include <errno.h>
#include <handshake.h>

// Calls the emulator, which does not set errno.
int wait_for(sysname_t notifier) __asm__("handshake_wait_for");

int handshake_wait_for(sysname_t notifier) {
  int error = wait_for(notifier);
  if (error != 0) errno = error;
  return error;
}
