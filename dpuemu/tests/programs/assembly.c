// Functions in DPU assembly: those of assembly.S, and at the end of this file.
#include "assembly.h"

#include <barrier.h>
#include <defs.h>
#include <perfcounter.h>

#include "expect.h"

enum { kCalls, kData, kWrongReturn, kChangesRegister, kCounts };

int sum_words(const int *words, uint32_t count);
uint32_t factorial(uint32_t n);
uint32_t uses_all(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
uint32_t apply(uint32_t (*function)(uint32_t), uint32_t argument);
uint32_t next(uint32_t n);
int (*choose(uint32_t n))(const int *, uint32_t);
int wrong_return(void), changes_r15(void), spaces(int), in_file(int, int);
extern uint32_t table[TABLE_BYTES / 4], result;

/// Calls assembly again, so that the stacks of nested calls follow each other.
uint32_t in_c(uint32_t n) { return n < 8 ? factorial(n) + me() : 3 * n; }
static uint32_t twice(uint32_t n) { return 2 * n + factorial(3); }

static void check_calls(void) {
  const int words[] = {1, -2, 30, 4, 5};
  EXPECT(sum_words(words, 5) == 38 && sum_words(words, 0) == 0);
  EXPECT(factorial(0) == 1 && factorial(10) == 3628800 && factorial(7) == 5040);
  EXPECT(uses_all(1, 2, 3, 4, 5, 6, 7, 8) == 1 + 4 + 12 + 32 + 80 + 192 + 448 + 1024);
  EXPECT(apply(twice, 10) == 4 * 10 + 3 * 6 + 3 * 10);
  EXPECT(apply(twice, 5) == 4 * 5 + 3 * 6 + 120 + me());
  EXPECT(apply(factorial, 3) == 720 + 6 + me() && apply(next, 9) == 3 * 31 + 3 * 9);
  EXPECT(next(19) == 60 && next(3) == 24 + me());
  EXPECT((uint32_t)choose(9) == 30);
  EXPECT(in_file(30, 4) == 34 - 30 * 2);
}

static void check_data(void) {
  if (me() != 0) return;
  EXPECT(table[0] == 5 && table[1] == 70 && table[2] == TABLE_BYTES / 4 - 1);
  EXPECT(table[3] == 0x04030201 && table[4] == 0x55667788 && table[5] == 0x11223344);
  EXPECT(choose(10) == sum_words && result == 0x11223344 - 70);
  EXPECT(spaces(1) == 1 + sizeof "a;b//c /* d */ words" - 1);
}

/// Each instruction counts as one: factorial(n) calls itself, and product, which has n rounds of 3.
static void check_count(void) {
  if (me() != 0) return;
  perfcounter_config(COUNT_INSTRUCTIONS, true);
  const perfcounter_t start = perfcounter_get();
  factorial(2);
  const perfcounter_t between = perfcounter_get();
  factorial(102);
  const perfcounter_t end = perfcounter_get();
  const uint32_t expected = 100 * (11 + 4) + 3 * (102 * 103 / 2 - 3);
  EXPECT(end - between >= between - start + expected - 32);
  EXPECT(end - between <= between - start + expected + 32);
}

int main(void) {
  if (topic == kCalls) check_calls();
  if (topic == kData) check_data();
  if (topic == kWrongReturn) wrong_return();
  if (topic == kChangesRegister) changes_r15();
  if (topic == kCounts) check_count();
  return 0;
}

asm(".globl in_file\n"
    "in_file:\n"
    "  sub r2, zero, r0\n"
    "  add r0, r0, r1\n"
    "  lsl_add r0, r0, r2, 1\n"
    "  jump r23\n");
