/// stdio.h: output to the log that the host reads.
///
/// Differs from the SDK: the compiler does not check printf formats, because its checks would
/// refuse either %lu or %llu for uint64_t. The SDK accepts both formats.
#ifndef PE_STDIO_H
#define PE_STDIO_H

#include <attributes.h>
#include <stddef.h>

/// Sets the size of the log in bytes (a multiple of 8, not 0). The log of a program that prints is
/// at the start of MRAM and has 1 MiB by default.
#define STDOUT_BUFFER_INIT(size)                                                     \
  _Static_assert((size) >= 8 && ((size) & 7) == 0,                                   \
                 "the size of the stdout buffer must be a multiple of 8 and not 0"); \
  unsigned char __mram_noinit __stdout_buffer[(size)];                               \
  const unsigned int __stdout_buffer_size = (size);

/// Prints atomically: the output of one call is never split by the output of other tasklets.
void printf(const char *__restrict format, ...);

/// Prints the string and a newline.
void puts(const char *str);

void putchar(int c);

#endif  // PE_STDIO_H
