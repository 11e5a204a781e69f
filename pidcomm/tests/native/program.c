/* A PE program with an MRAM variable, so that its heap does not start at 0. */
#include <mram.h>

__mram_noinit_keep uint8_t variable[1 << 16];

int main(void) { return 0; }
