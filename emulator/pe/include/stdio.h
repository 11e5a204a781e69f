/// stdio.h: output to the log that the host reads.
///
/// Differs from the SDK: the compiler does not check formats: the SDK's uint64_t goes with both %lu and %llu, the compiler here knows one.
#ifndef PE_STDIO_H
#define PE_STDIO_H

#include <attributes.h>
#include <stddef.h>

/// The log takes 1 MiB at the start of MRAM in a program that prints, unless this sets another size: bytes, a multiple of 8, not 0.
#define STDOUT_BUFFER_INIT(size)                                                                                       \
  _Static_assert((size) >= 8 && ((size) & 7) == 0, "the size of the stdout buffer must be a multiple of 8 and not 0"); \
  unsigned char __mram_noinit __stdout_buffer[(size)];                                                                 \
  const unsigned int __stdout_buffer_size = (size);

/// One call is one piece of the log: other tasklets' output never comes in between.
void printf(const char *restrict format, ...);

/// The string and a newline.
void puts(const char *str);

void putchar(int c);

#endif  // PE_STDIO_H
