#include <defs.h>
#include <stdint.h>

__host uint32_t number;

int main(void) {
  if (me() == 0) number *= 2;
  return 0;
}
