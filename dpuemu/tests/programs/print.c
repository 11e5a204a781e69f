// printf, puts, putchar. Topic 0: the lines of printed.def, 1: long, 2: a pointer, 3: puts and
// putchar, 4: all tasklets in turn.
#include <barrier.h>
#include <stddef.h>
#include <stdio.h>

#include "expect.h"

BARRIER_INIT(all, NR_TASKLETS);

int main(void) {
  if (topic == 4) {
    for (uint32_t i = 0; i < NR_TASKLETS; ++i) {
      if (me() == i) printf("tasklet %u\n", me());
      barrier_wait(&all);
    }
    return 0;
  }
  if (me() != 0) return 0;
  if (topic == 0) {
#define P(...) printf(__VA_ARGS__);
#include "printed.def"
#undef P
  }
  if (topic == 1)
    printf("%ld %lu %lx\n", (int64_t)-1234567890123456789L, (uint64_t)18446744073709551615UL,
           (uint64_t)0x123456789ABCDEFUL);
  if (topic == 2) printf("%p", (void *)&topic);
  if (topic == 3) {
    puts("a line");
    putchar('x');
    putchar('0' + 9);
    puts("");
  }
  return 0;
}
