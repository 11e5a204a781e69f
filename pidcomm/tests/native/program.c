/* A PE program with an MRAM variable, so that its heap does not start at 0, and with variables for
 * the place of a PE in a hypercube. */
#include <mram.h>
#include <stdint.h>

__mram_noinit_keep uint8_t variable[1 << 16];

__host uint32_t pidcomm_coord_x = 77, pidcomm_length_x = 77, pidcomm_coord_y = 77;
__host uint32_t pidcomm_group_10 = 77, pidcomm_member_10 = 77, pidcomm_member_11 = 77;
__host uint32_t pidcomm_coord_axis4 = 77, pidcomm_length_row = 77, pidcomm_length_nothing = 77;
__host uint64_t pidcomm_coord_wide = 77; /* of a wrong size */
#ifdef OTHER_PROGRAM
__mram_noinit_keep uint32_t pidcomm_length_remote; /* not in WRAM */
#else
__host uint32_t pidcomm_pe = 77;
#endif

int main(void) { return 0; }
