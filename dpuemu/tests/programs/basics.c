// Types, tasklet numbers, errno, stacks, stdlib.h, ctype.h.
#include <barrier.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "expect.h"

enum { kTypes, kTasklets, kErrno, kStacks, kStdlib, kCtype, kExit };

BARRIER_INIT(all, NR_TASKLETS);

__host uint32_t numbers[NR_TASKLETS];
__host int32_t unused_words[2 * NR_TASKLETS];  // before and inside a call that uses the stack

static volatile uint32_t sink;

#if defined(__SIZEOF_INT128__) || defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_4)
#error "a DPU has no such type or instruction"
#endif

static void types(void) {
  EXPECT(sizeof(char) == 1 && sizeof(short) == 2 && sizeof(int) == 4 && sizeof(long long) == 8);
  EXPECT(sizeof(void *) == 4 && sizeof(size_t) == 4 && sizeof(ptrdiff_t) == 4 &&
         sizeof(uintptr_t) == 4);
  EXPECT(sizeof(float) == 4 && sizeof(double) == 8 && sizeof(bool) == 1);
  EXPECT(sizeof(uint64_t) == 8 && sizeof(uint32_t) == 4);
  struct mixed {
    uint8_t byte;
    uint64_t wide;
    uint16_t half;
    void *pointer;
    double real;
  };
  EXPECT(offsetof(struct mixed, wide) == 8 && offsetof(struct mixed, half) == 16 &&
         offsetof(struct mixed, pointer) == 20);
  struct aligned {
    uint8_t byte;
    uint32_t word __attribute__((aligned(__BIGGEST_ALIGNMENT__)));
    uint32_t last __attribute__((aligned));
  };
  EXPECT(offsetof(struct aligned, word) == 4 && offsetof(struct aligned, last) == 16 &&
         sizeof(struct aligned) == 32);
  EXPECT(offsetof(struct mixed, real) == 24 && sizeof(struct mixed) == 32);
  EXPECT(CHAR_BIT == 8 && INT_MAX == 2147483647 && INT_MIN == -2147483647 - 1 &&
         UINT_MAX == 4294967295u);
  EXPECT(SHRT_MAX == 32767 && UCHAR_MAX == 255 && LLONG_MAX == 9223372036854775807LL);
  // limits.h of the SDK: a long has 64 bits, and uint64_t is one.
  EXPECT(sizeof(long) == 8 && LONG_MAX == 9223372036854775807LL &&
         ULONG_MAX == 18446744073709551615ULL);
}

static void tasklets(void) {
  numbers[me()] = 1000 + me();
  barrier_wait(&all);
  numbers[me()] += me();
}

static void errno_is_own(void) {
  errno = (int)me() + 1;
  barrier_wait(&all);
  EXPECT(errno == (int)me() + 1);
}

static __noinline uint32_t deep(uint32_t depth) {
  volatile uint32_t words[16];
  words[depth % 16] = depth;
  if (depth == 0) {
    unused_words[NR_TASKLETS + me()] = check_stack();
    return words[0];
  }
  return deep(depth - 1) + words[depth % 16];
}

static void stacks(void) {
  unused_words[me()] = check_stack();
  sink += deep(4);
}

static void standard_library(void) {
  EXPECT(atoi("42") == 42 && atoi("  \t-17x") == -17 && atoi("+8") == 8 && atoi("x") == 0 &&
         atoi("") == 0);
  errno = 0;
  EXPECT(atoi("2147483647") == INT_MAX && errno == 0);
  EXPECT(atoi("-2147483648") == INT_MIN && errno == 0);
  EXPECT(atoi("2147483648") == INT_MAX && errno == ERANGE);
  errno = 0;
  EXPECT(atoi("-99999999999999999999") == INT_MIN && errno == ERANGE);
  errno = 0;
  EXPECT(atol("9223372036854775807") == LONG_MAX && errno == 0);
  EXPECT(atol("-9223372036854775809") == LONG_MIN && errno == ERANGE);
  EXPECT(abs(-5) == 5 && abs(5) == 5 && labs(-5000000000L) == 5000000000L && llabs(-6LL) == 6);
  volatile int seven = -7;
  div_t quotient = div(seven, 2);
  EXPECT(quotient.quot == -3 && quotient.rem == -1);
  lldiv_t wide = lldiv(70000000000LL, 3);
  EXPECT(wide.quot == 23333333333LL && wide.rem == 1);
  EXPECT(getenv("PATH") == NULL);
}

static void characters(void) {
  uint32_t letters = 0, digits = 0, spaces = 0, uppers = 0, printing = 0, hexadecimal = 0,
           marks = 0;
  for (int c = 0; c < 128; ++c) {
    letters += isalpha(c) != 0;
    digits += isdigit(c) != 0;
    spaces += isspace(c) != 0;
    uppers += isupper(c) != 0;
    printing += isprint(c) != 0;
    hexadecimal += isxdigit(c) != 0;
    marks += ispunct(c) != 0;
    EXPECT((isalnum(c) != 0) == (isalpha(c) != 0 || isdigit(c) != 0));
  }
  EXPECT(letters == 52 && digits == 10 && spaces == 6 && uppers == 26 && printing == 95 &&
         hexadecimal == 22 && marks == 32);
  EXPECT(tolower('Q') == 'q' && toupper('q') == 'Q' && toupper('1') == '1');
}

static __noinline void leave(int status) {
  numbers[me()] = 1;
  exit(status);
}

int main(void) {
  if (topic == kTasklets) tasklets();
  if (topic == kErrno) errno_is_own();
  if (topic == kStacks) stacks();
  if (topic == kExit) {
    numbers[me()] = 0;
    barrier_wait(&all);
    if (me() % 2 == 0) leave((int)me());
    numbers[me()] += 2;
    return 7;
  }
  if (me() != 0) return 0;
  if (topic == kTypes) types();
  if (topic == kStdlib) standard_library();
  if (topic == kCtype) characters();
  return 0;
}
