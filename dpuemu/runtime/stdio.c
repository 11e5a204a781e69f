#include <stdarg.h>
#include <stdio.h>

#include "fault.h"

void __pe_print_bytes(const char *bytes, uint32_t length);

// The default log in MRAM. The emulator stores the output elsewhere, but a program that prints has
// less MRAM by the size of this log.
__attribute__((weak, aligned(8),
               section(".mram.noinit.stdout"))) __mram_ptr unsigned char __stdout_buffer[1 << 20];
__attribute__((weak)) const unsigned int __stdout_buffer_size = sizeof __stdout_buffer;

// These relocations have no effect, but make the linker keep both symbols in programs that print,
// and only in programs that print.
#define KEEP_LOG    \
  __asm__ volatile( \
      ".reloc ., R_X86_64_NONE, __stdout_buffer\n\t.reloc ., R_X86_64_NONE, __stdout_buffer_size")

void printf(const char *restrict format, ...) {
  KEEP_LOG;
  va_list arguments;
  va_start(arguments, format);
  __pe_print_format(format, &arguments);
  va_end(arguments);
}

void puts(const char *str) { printf("%s\n", str); }

void putchar(int c) {
  KEEP_LOG;
  char character = (char)c;
  __pe_print_bytes(&character, 1);
}
