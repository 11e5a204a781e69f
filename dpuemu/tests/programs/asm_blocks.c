// Blocks of several DPU instructions, whose results C computes again.
#include <atomic_bit.h>
#include <barrier.h>
#include <built_ins.h>
#include <defs.h>
#include <perfcounter.h>
#include <stdbool.h>

#include "expect.h"

enum { kResults, kMutexes, kTime };
enum { kRounds = 100 };

BARRIER_INIT(all, NR_TASKLETS);
ATOMIC_BIT_INIT(bits)[4];
uint8_t flags[8];
volatile uint32_t counter;
uint32_t table[4] = {0x01020304, 0x80FF7F00, 3, 4};
struct record {
  uint8_t byte;
  int16_t half;
  uint32_t word;
  uint64_t wide;
};

static const uint32_t kWords[] = {0,          1,          2,          0x7F,   0x80,
                                  0xFF,       0x100,      0xFFFF,     0x8000, 0x12345678,
                                  0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 31,     32};
enum { kCount = sizeof kWords / sizeof *kWords };

/// Writes 1 if the conditional jump is taken.
#define JUMPS(instruction, condition, ...)         \
  ({                                               \
    uint32_t made, taken;                          \
    __asm__(                                       \
        "  move %[taken], 1\n"                     \
        "  " instruction ", " condition            \
        ", done%=\n"                               \
        "  move %[taken], 0\n"                     \
        "done%=:\n"                                \
        : [made] "=&r"(made), [taken] "=&r"(taken) \
        : __VA_ARGS__);                            \
    taken;                                         \
  })
/// The value of a set instruction.
#define SETS(instruction, condition, ...)                                          \
  ({                                                                               \
    uint32_t made;                                                                 \
    __asm__("nop; " instruction ", " condition : [made] "=r"(made) : __VA_ARGS__); \
    made;                                                                          \
  })

static void conditions(uint32_t a, uint32_t b) {
#define OF_SUB(condition) JUMPS("sub %[made], %[a], %[b]", condition, [a] "r"(a), [b] "r"(b))
#define OF_ADD(condition) JUMPS("add %[made], %[a], %[b]", condition, [a] "r"(a), [b] "r"(b))
#define SET_BY_SUB(condition) SETS("sub %[made], %[a], %[b]", condition, [a] "r"(a), [b] "r"(b))
  const int32_t x = (int32_t)a, y = (int32_t)b;
  const int64_t difference = (int64_t)x - y;
  const bool overflows = difference != (int32_t)difference;
  EXPECT(OF_SUB("z") == (a == b) && OF_SUB("nz") == (a != b));
  EXPECT(OF_SUB("ltu") == (a < b) && OF_SUB("geu") == (a >= b));
  EXPECT(OF_SUB("leu") == (a <= b) && OF_SUB("gtu") == (a > b));
  EXPECT(OF_SUB("lts") == (x < y) && OF_SUB("ges") == (x >= y));
  EXPECT(OF_SUB("les") == (x <= y) && OF_SUB("gts") == (x > y));
  EXPECT(OF_SUB("ov") == overflows && OF_SUB("nov") == !overflows);
  EXPECT(OF_SUB("spl") == (x >= 0) && OF_SUB("smi") == (x < 0));
  EXPECT(OF_SUB("sz") == (a == 0) && OF_SUB("snz") == (a != 0) && OF_SUB("true") == 1);
  EXPECT(OF_ADD("c") == (a + b < a) && OF_ADD("nc") == (a + b >= a));
  EXPECT(OF_ADD("nc6") == (((a ^ b ^ (a + b)) >> 6 & 1) == 0));
  EXPECT(OF_ADD("pl") == ((int32_t)(a + b) >= 0) && OF_ADD("mi") == ((int32_t)(a + b) < 0));
  EXPECT(SET_BY_SUB("z") == (a == b) && SET_BY_SUB("ltu") == (a < b) &&
         SET_BY_SUB("gts") == (x > y));
  EXPECT(SETS("and %[made], %[a], %[b]", "nz", [a] "r"(a), [b] "r"(b)) == ((a & b) != 0));
  EXPECT(JUMPS("lsr %[made], %[a], 3", "so", [a] "r"(a)) == (a & 1));
  EXPECT(JUMPS("lsr %[made], %[a], 3", "e", [a] "r"(a)) == !(a >> 3 & 1));
  EXPECT(JUMPS("lsl %[made], %[a], %[b]", "sh32", [a] "r"(a), [b] "r"(b)) == (b >> 5 & 1));
  EXPECT(JUMPS("clz %[made], %[a]", "max", [a] "r"(a)) == (a == 0));
  EXPECT(JUMPS("cls %[made], %[a]", "max", [a] "r"(a)) == (a == 0 || a == ~0u));
  EXPECT(JUMPS("mul_ul_ul %[made], %[a], %[b]", "small", [a] "r"(a), [b] "r"(b)) ==
         (((a | b) & 0xFF00) == 0));
  uint32_t taken;
#define SHORT_JUMP(name, operand)                                   \
  ({                                                                \
    __asm__("move %0, 1; " name " %1, " operand ", .+2; move %0, 0" \
            : "=&r"(taken)                                          \
            : "r"(a), "r"(b));                                      \
    taken;                                                          \
  })
  EXPECT(SHORT_JUMP("jeq", "%2") == (a == b) && SHORT_JUMP("jneq", "%2") == (a != b));
  EXPECT(SHORT_JUMP("jltu", "%2") == (a < b) && SHORT_JUMP("jgeu", "31") == (a >= 31));
  EXPECT(SHORT_JUMP("jges", "%2") == (x >= y) && SHORT_JUMP("jles", "-1") == (x <= -1));
}

#define BINARY(name, a, b)                                                            \
  ({                                                                                  \
    uint32_t made;                                                                    \
    __asm__("move r7, %1; " name " %0, r7, %2" : "=r"(made) : "r"(a), "r"(b) : "r7"); \
    made;                                                                             \
  })

static void results(uint32_t a, uint32_t b) {
  EXPECT(BINARY("mul_ul_uh", a, b) == (uint8_t)a * (uint8_t)(b >> 8));
  EXPECT(BINARY("mul_uh_ul", a, b) == (uint8_t)(a >> 8) * (uint8_t)b);
  EXPECT(BINARY("mul_sh_sl", a, b) == (uint32_t)((int8_t)(a >> 8) * (int8_t)b));
  EXPECT(BINARY("mul_sl_ul", a, b) == (uint32_t)((int8_t)a * (uint8_t)b));
  uint32_t equal = 0;
  for (uint32_t i = 0; i < 4; ++i)
    equal |= (uint32_t)((uint8_t)(a >> 8 * i) == (uint8_t)(b >> 8 * i)) << 8 * i;
  EXPECT(BINARY("cmpb4", a, b) == equal);
  uint32_t first, second, third;
  __asm__(
      "lsl_add %0, %3, %4, 5  // a comment; it is no instruction\n"
      "lsl_sub %1, %3, %4, 3\n"
      "rol_add %2, %3, %4, 31"
      : "=&r"(first), "=&r"(second), "=&r"(third)
      : "r"(a), "r"(b));
  EXPECT(first == a + (b << 5) && second == a - (b << 3) && third == a + (b << 31 | b >> 1));
  __asm__("sats %0, %3; cls %1, %3; lslx %2, %3, 7"
          : "=&r"(first), "=&r"(second), "=&r"(third)
          : "r"(a));
  EXPECT(first == (a >> 31 ? 0x7FFFFFFF : 0x80000000) && third == a >> 25);
  EXPECT(second == (uint32_t)__builtin_clz((a >> 31 ? ~a : a) << 1 | 1));
  __asm__("neg %0, %2; not %1, %2; sub %0, 5, %0" : "=&r"(first), "=&r"(second) : "r"(a));
  EXPECT(first == 5 + a && second == ~a);
}

static void pairs(uint32_t a, uint32_t b) {
  const uint64_t wide = (uint64_t)a << 32 | b;
  uint64_t sum = 0, swapped, product;
  uint32_t low, high;
  // A sum of 64 bits: the even register of a pair is the upper half.
  __asm__(
      "movd d2, %[x]\n"
      "add r1, r3, %[low]\n"
      "addc r0, r2, %[high]\n"
      "movd %[sum], d0"
      : [sum] "=r"(sum)
      : [x] "r"(wide), [low] "r"(b), [high] "r"(7)
      : "d0", "d2");
  EXPECT(sum == wide + ((uint64_t)7 << 32 | b));
  __asm__("sub r1, %[b], %[a]; move r2, 0; subc r0, zero, r2; movd %[d], d0"
          : [d] "=r"(sum)
          : [a] "r"(a), [b] "r"(b)
          : "r0", "r1", "r2");
  EXPECT(sum == (uint64_t)b - a);
  __asm__("swapd %0, %1" : "=r"(swapped) : "r"(wide));
  EXPECT(swapped == ((uint64_t)b << 32 | a));
  __asm__("move.s d10, %2; move %0, r10; move %1, r11" : "=&r"(high), "=&r"(low) : "r"(a) : "d10");
  EXPECT(high == (a >> 31 ? ~0u : 0) && low == a);
  __asm__("mul_sl_sl.s %0, %1, %2" : "=r"(product) : "r"(a), "r"(b));
  EXPECT(product == (uint64_t)((int8_t)a * (int8_t)b));
  // The routine for products: a step for each bit of the factor.
  __asm__(
      "move r0, %1\n"
      "move r1, 0\n"
#define STEP(shift) "mul_step d0, %2, d0, " #shift ", z, 1f\n"
      STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) "1: move %0, r1"
      : "=&r"(low)
      : "r"(a & 0xFF), "r"(b)
      : "r0", "r1");
  EXPECT(low == (a & 0xFF) * b);
  const uint32_t divisor = (b & 0xFF) | 1;
  __asm__("move.u d0, %2\n"
#define DIVIDE(shift) "div_step d0, %3, d0, " #shift "\n"
          DIVIDE(7) DIVIDE(6) DIVIDE(5) DIVIDE(4) DIVIDE(3) DIVIDE(2) DIVIDE(1)
              DIVIDE(0) "move %0, r0; move %1, r1"
          : "=&r"(high), "=&r"(low)
          : "r"(a & 0xFF), "r"(divisor)
          : "d0");
  EXPECT(high == (a & 0xFF) / divisor && low == (a & 0xFF) % divisor);
}

static void loops(void) {
  uint32_t sum = 0, turns = 10;
  __asm__ volatile(
      "1: add %0, %0, %1\n"
      "   jltu %0, 40, 2f\n"
      "   add %0, %0, 1000\n"
      "2: sub %1, %1, 1, nz, 1b"
      : "+r"(sum), "+r"(turns));
  uint32_t expected = 0;
  for (uint32_t i = 10; i != 0; --i)
    expected = expected + i < 40 ? expected + i : expected + i + 1000;
  EXPECT(sum == expected && turns == 0);
  uint32_t found;
  __asm__("move %0, 0; jump 3f; next: add %0, %0, 1; 3: lsl r8, one, %0; jltu r8, %1, next"
          : "=&r"(found)
          : "r"(1000)
          : "r8");
  EXPECT(found == 10);
  __asm__ goto("jneq %0, 7, %l[other]" : : "r"(found) : : other);
  EXPECT(false);
other:
  EXPECT(found == 10);
  register uint32_t same = 4;
  __asm__("add %0, %1, %[more]" : "=r"(same) : "0"(same), [more] "i"(sizeof(struct record)));
  EXPECT(same == 4 + sizeof(struct record));
}

/// The operands of a block are evaluated once, before it.
static void operands(void) {
  uint32_t index = 0, words[2] = {7, 7}, other;
  uint32_t *next = words;
  __asm__("move %0, 1; move %1, 5" : "=&r"(index), "=&r"(words[index]));
  EXPECT(index == 1 && words[0] == 5 && words[1] == 7);
  __asm__("add %0, %0, 4; move %1, 6" : "+&r"(next), "=&r"(*next));
  EXPECT(next == words + 1 && words[0] == 6 && words[1] == 7);
  uint64_t kept = 0x1122334455667788, copied = 0;
  __asm__ volatile("nop; nop" : "+r"(kept));
  __asm__ volatile("nop; nop" : "=r"(copied) : "0"(kept + 1));
  EXPECT(kept == 0x1122334455667788 && copied == kept + 1);
  __asm__("add %0, zero, %[less] / 2; add %0, %0, (1 << 2) + 1" : "=r"(other) : [less] "i"(-8));
  EXPECT(other == 1);
  __asm__ goto("jeq %0, 7, %l[seven]; sw %1, 0, %0" : : "r"(other), "r"(words) : "memory" : seven);
  EXPECT(words[0] == 1);
  __asm__ goto("sw %1, 0, %0; jeq %0, 9, %l[seven]" : : "r"(9), "r"(words) : "memory" : seven);
  EXPECT(false);
seven:
  EXPECT(words[0] == 9);
}

static void memory(void) {
  struct record record = {0x80, -2, 0x12345678, 0x1122334455667788};
  uint32_t byte, half, word, swapped;
  int64_t wide, extended;
  __asm__(
      "lbs %[byte], %[at], 0\n"
      "lhs.s %[extended], %[at], %[half_at]\n"
      "lhu %[half], %[at], %[half_at]\n"
      "lw %[word], %[at], 4\n"
      "lw !big, %[swapped], %[at], 0x2 + 2\n"
      "ld %[wide], %[at], 8"
      : [byte] "=&r"(byte), [half] "=&r"(half), [word] "=&r"(word), [wide] "=&r"(wide),
        [extended] "=&r"(extended), [swapped] "=&r"(swapped)
      : [at] "r"(&record), [half_at] "i"(__builtin_offsetof(struct record, half))
      : "memory");
  EXPECT(byte == 0xFFFFFF80 && half == 0xFFFE && word == 0x12345678 && swapped == 0x78563412);
  EXPECT(wide == 0x1122334455667788 && extended == -2);
  __asm__ volatile("sb %0, 0, 300; sh %0, 2, %1; sw !big, %0, 4, %1; sd %0, 8, %2"
                   :
                   : "r"(&record), "r"(0x01020304), "r"(wide + 1)
                   : "memory");
  EXPECT(record.byte == 44 && record.half == 0x0304 && record.word == 0x04030201);
  EXPECT(record.wide == 0x1122334455667789);
  __asm__ volatile("sw_id %0, 4, 64; sd %0, 8, -3" : : "r"(&record) : "memory");
  EXPECT(record.word == (64 | me()) && record.wide == (uint64_t)-3);
  __asm__("lsl r8, %1, 2; lw %0, r8, table" : "=r"(word) : "r"(1) : "r8");
  EXPECT(word == table[1]);
  __asm__("move %0, id; add %0, id4, %0" : "=r"(word));
  EXPECT(word == 5 * me());
}

/// Locks bit `number` of `flags`, whose bytes a mutex protects.
static void lock(uint32_t number) {
  __asm__ volatile(
      "  lsr_add r8, %[flags], %[number], 3\n"
      "  and r9, %[number], 7\n"
      "  lsl r9, one, r9\n"
      "0:\n"
      "  acquire %[mutex], 0, nz, 0b\n"
      "  lbu r10, r8, 0\n"
      "  or r11, r10, r9\n"
      "  sb r8, 0, r11\n"
      "  release %[mutex], 0, nz, .+1\n"
      "  jeq r10, r11, 0b"
      :
      : [flags] "r"(flags), [number] "r"(number), [mutex] "r"(&ATOMIC_BIT_GET(bits)[1])
      : "r8", "r9", "r10", "r11", "memory");
}

static void mutexes(void) {
  for (uint32_t i = 0; i < kRounds; ++i) {
    lock(13);
    const uint32_t before = counter;
    for (uint32_t j = 0; j < me(); ++j) __builtin_nop_();
    __asm__ volatile("acquire %0, 1, nz, .; release %0, 1, nz, .+1"
                     :
                     : "r"(&ATOMIC_BIT_GET(bits)[1]));
    counter = before + 1;
    flags[13 / 8] = 0;
  }
  barrier_wait(&all);
  if (me() != 0) return;
  EXPECT(counter == kRounds * NR_TASKLETS);
  bool is_free = true, is_again_free = true;
  __asm__ volatile("acquire %1, 0, z, .+2; move %0, 0"
                   : "+r"(is_free)
                   : "r"(&ATOMIC_BIT_GET(bits)[3]));
  __asm__ volatile("acquire %1, 0, z, .+2; move %0, 0"
                   : "+r"(is_again_free)
                   : "r"(&ATOMIC_BIT_GET(bits)[3]));
  EXPECT(is_free && !is_again_free);
}

/// Each instruction counts as one, whatever its C code is.
static void count(void) {
  if (me() != 0) return;
  uint32_t turns = kRounds, value = 0x12345678;
  perfcounter_config(COUNT_INSTRUCTIONS, true);
  const perfcounter_t start = perfcounter_get();
  __asm__ volatile(
      "1: cmpb4 r8, %1, %0\n"
      "   mul_sh_sl r9, %1, r8\n"
      "   cls r10, r9\n"
      "   sub %0, %0, 1, gtu, 1b"
      : "+r"(turns)
      : "r"(value)
      : "r8", "r9", "r10");
  const perfcounter_t end = perfcounter_get();
  EXPECT(end - start >= 4 * kRounds && end - start <= 4 * kRounds + 32);
}

int main(void) {
  if (topic == kResults && me() == NR_TASKLETS - 1) {
    for (uint32_t i = 0; i < kCount; ++i)
      for (uint32_t j = 0; j < kCount; ++j) {
        conditions(kWords[i], kWords[j]);
        results(kWords[i], kWords[j]);
        pairs(kWords[i], kWords[j]);
      }
    loops();
    operands();
    memory();
  }
  if (topic == kMutexes) mutexes();
  if (topic == kTime) count();
  return 0;
}
