// Arithmetic of all types on numbers from the host.
#include <attributes.h>
#include <stdint.h>

#include "arithmetic_case.h"

__host struct arithmetic_case cases[ARITHMETIC_CASES];
__host uint64_t results[ARITHMETIC_CASES][ARITHMETIC_RESULTS];

int main(void) {
  for (uint32_t i = 0; i < ARITHMETIC_CASES; ++i) compute_case(&cases[i], results[i]);
  return 0;
}
