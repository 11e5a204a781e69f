// Single DPU instructions in asm blocks and built-ins.
#include <alloc.h>
#include <atomic_bit.h>
#include <barrier.h>
#include <built_ins.h>
#include <defs.h>
#include <perfcounter.h>

#include "expect.h"

enum { kValues, kLocks, kStop, kNops };
enum { kRounds = 200 };

BARRIER_INIT(all, NR_TASKLETS);
ATOMIC_BIT_INIT(bits)[4];
volatile uint32_t counter;
volatile uint32_t ended;

static void acquire(volatile void *lock) {
  __asm__ __volatile__("acquire %[p], 0, nz, ." : : [p] "r"(lock) :);
}
static void release(volatile void *lock) {
  asm volatile("release %[p], 0, nz, .+1" : : [p] "r"(lock) : "memory");
}

#define BINARY(name, a, b)                                                  \
  ({                                                                        \
    uint32_t made;                                                          \
    __asm__(#name " %0, %1, %2" : "=r"(made) : "r"((uint32_t)(a)), "r"(b)); \
    made;                                                                   \
  })
#define UNARY(name, a)                                              \
  ({                                                                \
    uint32_t made;                                                  \
    __asm__(#name " %[to], %[of]" : [to] "=r"(made) : [of] "r"(a)); \
    made;                                                           \
  })

static void values(void) {
  EXPECT(BINARY(add, 5, 7) == 12 && BINARY(sub, 5, 7) == (uint32_t)-2 && BINARY(rsub, 5, 7) == 2);
  EXPECT(BINARY(and, 12, 10) == 8 && BINARY(or, 12, 10) == 14 && BINARY(xor, 12, 10) == 6);
  EXPECT(BINARY(nand, 12, 10) == ~8u && BINARY(nor, 12, 10) == ~14u && BINARY(nxor, 12, 10) == ~6u);
  EXPECT(BINARY(andn, 12, 10) == 2 && BINARY(orn, 12, 10) == (~12u | 10));
  EXPECT(BINARY(lsl, 1, 31) == 1u << 31 && BINARY(lsr, 1u << 31, 31) == 1 &&
         BINARY(asr, 1u << 31, 31) == ~0u);
  EXPECT(BINARY(rol, 0x80000001, 1) == 3 && BINARY(ror, 3, 1) == 0x80000001 &&
         BINARY(rol, 9, 0) == 9);
  EXPECT(UNARY(move, 42) == 42 && UNARY(cao, 0xF0F0u) == 8 && UNARY(clz, 0u) == 32 &&
         UNARY(clz, 1u) == 31);
  EXPECT(UNARY(extsb, 0x180u) == 0xFFFFFF80 && UNARY(extub, 0x180u) == 0x80);
  EXPECT(UNARY(extsh, 0x18000u) == 0xFFFF8000 && UNARY(extuh, 0x18000u) == 0x8000);
  uint32_t sum = 3;
  __asm__("add %0, %0, 0x10" : "+r"(sum));
  EXPECT(sum == 19);
  register uint32_t kept = 3;
  __asm__("add %0, %1, 4" : "=r"(kept) : "r"(kept));
  EXPECT(kept == 7);
  uint32_t calls = 0;
  __asm__("add %0, %1, %1" : "=r"(sum) : "r"(++calls));  // an operand is evaluated once
  EXPECT(sum == 2 && calls == 1);
  uint32_t outputs[2] = {0, 0}, at = 0;
  __asm__ volatile("move %0, %1" : "=r"(outputs[at++]) : "r"(9));
  EXPECT(outputs[0] == 9 && outputs[1] == 0 && at == 1);
}

/// Each tasklet increments the counter, with other tasklets between its load and its store.
static void locks(void) {
  for (uint32_t i = 0; i < kRounds; ++i) {
    acquire(&ATOMIC_BIT_GET(bits)[2]);
    const uint32_t before = counter;
    for (uint32_t j = 0; j < me(); ++j) __builtin_nop_();
    acquire(&ATOMIC_BIT_GET(bits)[3]);
    release(&ATOMIC_BIT_GET(bits)[3]);
    counter = before + 1;
    release(&ATOMIC_BIT_GET(bits)[2]);
  }
  barrier_wait(&all);
  if (me() == 0) EXPECT(counter == kRounds * NR_TASKLETS);
}

static void stop(void) {
  barrier_wait(&all);
  if (me() == 0) EXPECT(ended == 0);
  if (me() != 0) {
#pragma GCC diagnostic push
    __asm__("stop");
#pragma GCC diagnostic pop
  }
  ++ended;  // tasklet 0 only
  EXPECT(ended == 1);
}

/// Ten instructions without effect take the time of ten instructions: 11 cycles each for one
/// tasklet.
static void nops(void) {
  if (me() != 0) return;
  perfcounter_config(COUNT_CYCLES, true);
  const perfcounter_t start = perfcounter_get();
  const perfcounter_t between = perfcounter_get();
  asm volatile("nop");
  for (uint32_t i = 0; i < 9; ++i) __builtin_nop_();
  const perfcounter_t end = perfcounter_get();
  EXPECT(end - between >= between - start + 110);
}

int main(void) {
  if (topic == kValues && me() == 0) values();
  if (topic == kLocks) locks();
  if (topic == kStop) stop();
  if (topic == kNops) nops();
  return 0;
}
