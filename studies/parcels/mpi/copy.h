/// The copy of message data, the same for all engines.
#pragma once

#include <stddef.h>

#include "pim/hooks.h"

PIM_IN(copy) static void mpi_copy(char *to, const char *from, size_t bytes) {
  const size_t words = bytes / 8;
  for (size_t i = 0; i < words; ++i) __builtin_memcpy(to + 8 * i, from + 8 * i, 8);
  for (size_t i = 8 * words; i < bytes; ++i) to[i] = from[i];
}
