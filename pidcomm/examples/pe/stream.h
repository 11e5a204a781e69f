/* Shared by the host and the PEs of stream: vectors of kWords words, and the kernel's formula. */
#ifndef STREAM_H
#define STREAM_H

#include <stdint.h>

enum { kWords = 4096 };

static inline uint32_t new_word(uint32_t word) { return word * 40503u + (word >> 7); }

#endif
