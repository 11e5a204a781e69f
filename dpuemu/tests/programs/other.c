// A second program, whose `input` has another address: after a table.
#include <attributes.h>
#include <stdint.h>

__host uint32_t before[100] = {1};
__host uint32_t input = 6;
__host uint32_t output;
__host uint32_t only_here = 1;

int main(void) {
  output = 3 * input + before[0] - 1;
  return 0;
}
