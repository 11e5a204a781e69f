/* Runs one step of a number-theoretic transform on a PE, or multiplies two transforms element by
 * element; see ntt.h.
 *
 * The host defines STEPS, initialisers of struct ntt_step; LIMBS, the limbs of a PE in one window;
 * ELEMENTS, the elements of a PE in one window; LOG_RADIX and BATCH. */
#include <barrier.h>
#include <defs.h>
#include <stdint.h>

#include "ntt.h"

enum { FORWARD, INVERSE, MULTIPLY };

BARRIER_INIT(everybody, NR_TASKLETS);
__host uint32_t operation;
__host uint32_t step;
__host uint32_t first;          /* the first limb of the window, of those of the PE */
__host uint32_t source, target; /* offsets of windows in the MRAM heap; MULTIPLY: a and b */

static const struct ntt_step steps[] = {STEPS};

int main(void) {
  const struct ntt_limbs limbs = {LIMBS, first, LIMBS, 0};
  if (operation == MULTIPLY)
    ntt_multiply(steps + sizeof(steps) / sizeof(steps[0]) - 1, &limbs, ELEMENTS, source, target);
  else
    ntt_transform(steps + step, &limbs, source, target, operation == INVERSE, AT_SCALES,
                  &everybody);
  return 0;
}
