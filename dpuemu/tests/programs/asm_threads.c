// Instructions in asm blocks that concern MRAM, other tasklets, and time.
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>
#include <string.h>

#include "expect.h"

enum { kTransfers, kRunBits, kPairs, kTimes, kWaitingFault, kMissingFault, kClearFault };
enum { kMramBytes = 8192, kRounds = 100 };

BARRIER_INIT(all, NR_TASKLETS);
__mram_noinit uint8_t mram[kMramBytes];
__dma_aligned uint8_t expected[2064], buffer[2064];
volatile uint32_t jobs[NR_TASKLETS], sums[NR_TASKLETS];

/// ldma and sdma move what mram_read and mram_write move: at masked addresses, with lengths in the
/// immediate and in the highest byte of the address, of WRAM and of the stack.
static void transfers(void) {
  if (me() != 0) return;
  uint32_t random = 12345;
  __dma_aligned uint8_t local[16];
  for (uint32_t i = 0; i + sizeof buffer / 2 <= kMramBytes; i += sizeof buffer / 2) {
    for (uint32_t j = 0; j < sizeof buffer; ++j) buffer[j] = (random = random * 1664525 + 1) >> 24;
    mram_write(buffer, mram + i / 8 * 8, 1032);
  }
  for (uint32_t round = 0; round < kRounds; ++round) {
    random = random * 1664525 + 1013904223;
    const uint32_t units = random >> 24, more = random >> 16 & 0xFF, at = random >> 8 & 0xFF;
    const uint32_t bytes = ((units + more) % 256 + 1) * 8, masked = at & 7;
    const uint32_t from = (uint32_t)mram + at + (round % 2 ? 0x08000000 : 0);
    memset(buffer, 0, sizeof buffer);
    memset(expected, 0, sizeof expected);
    mram_read((__mram_ptr void *)((uint32_t)mram + at - masked), expected + 8, bytes);
    const uint32_t address = (uint32_t)buffer + 8 + (round & 7) + (more << 24);
#define LOAD(number) \
  __asm__ volatile("ldma %0, %1, " #number : : "r"(address + ((units - number) << 24)), "r"(from))
    if (round % 3 == 0) LOAD(0);
    if (round % 3 == 1) LOAD(200);
    if (round % 3 == 2) LOAD(255);
    EXPECT(memcmp(buffer, expected, sizeof buffer) == 0);
    const uint32_t to = (uint32_t)mram + 4096 + at;
    __asm__ volatile("sdma %0, %1, 1" : : "r"(buffer + 8 + (round & 7)), "r"(to) : "memory");
    __asm__ volatile("ldma %0, %1, 1; lw r1, %0, 4; sw %2, 0, r1"
                     :
                     : "r"(local), "r"(to & ~7u), "r"(sums)
                     : "memory");
    EXPECT(memcmp(local, buffer + 8, 16) == 0 && sums[0] == *(uint32_t *)(buffer + 12));
  }
}

static uint32_t read_run(uint32_t bit) {
  uint32_t result = 2;
  __asm__ volatile("move %0, 1; read_run %1, 0, nz, 1f; move %0, 0; 1:" : "+r"(result) : "r"(bit));
  return result;
}

/// The bits of RUN: of a running, a stopped and an ended tasklet, and the bits that mean nothing.
static void run_bits(void) {
  if (me() == 2) return;
  if (me() == 1) {
    __asm__ volatile("stop true, 1f; fault 9; 1:");
    sums[1] = 7;
    barrier_wait(&all);
  }
  if (me() != 0) return;
  while (read_run(1) || read_run(2)) continue;
  EXPECT(read_run(0) && !read_run(3 + NR_TASKLETS) && sums[1] == 0);
  uint32_t was_clear = 0, was_set = 0, parity = 0;
  __asm__ volatile("resume %1, 1, z, 1f; jump 2f; 1: move %0, 1; 2:" : "+r"(was_clear) : "r"(me()));
  while (sums[1] != 7) read_run(1);
  EXPECT(was_clear);
  __asm__ volatile("resume %1, 0, nz, 1f; jump 2f; 1: move %0, 1; 2:" : "+r"(was_set) : "r"(me()));
  EXPECT(was_set);
  __asm__ volatile("resume zero, 2");  // ends again
  EXPECT(!read_run(2));
  __asm__ volatile("resume zero, 40; resume %1, 30, snz, 1f; move %0, 1; 1: tell zero, 5"
                   : "+r"(parity)
                   : "r"(10));
  EXPECT(!parity && read_run(40) && read_run(104) && !read_run(41));
  __asm__ volatile("clr_run zero, 40");
  EXPECT(!read_run(40));
}

/// Tasklet 0 resumes each other one for each job, and waits until all have stopped again.
static void pairs(void) {
  for (uint32_t round = 1; me() != 0 && round <= kRounds; ++round) {
    __asm__ volatile("stop false, 1f; 1:");
    sums[me()] += jobs[me()];
  }
  if (me() != 0) return;
  for (uint32_t round = 1; round <= kRounds; ++round) {
    for (uint32_t i = 1; i < NR_TASKLETS; ++i) {
      while (read_run(i)) continue;
      EXPECT(sums[i] == i * round * (round - 1) / 2);
      jobs[i] = i * round;
      __asm__ volatile("resume %0, 0;" : : "r"(i));
    }
  }
  for (uint32_t i = 1; i < NR_TASKLETS; ++i) {
    while (read_run(i)) continue;
    EXPECT(sums[i] == i * kRounds * (kRounds + 1) / 2);
  }
}

/// time is perfcounter_get without the low four bits; time_cfg is perfcounter_config.
static void times(void) {
  if (me() != 0) return;
  uint32_t before, after, high = 5, low = 5;
  __asm__ volatile("time_cfg %0, %1" : "=r"(before) : "r"(COUNT_CYCLES << 1 | 1));
  for (uint32_t i = 0; i < 200; ++i) __asm__ volatile("nop");
  const perfcounter_t between = perfcounter_get();
  __asm__ volatile("time %0; time.u d2; move %1, r2; move %2, r3"
                   : "=r"(after), "=r"(high), "=r"(low));
  EXPECT(between >= 2200 && after >= between >> 4 && after <= (between >> 4) + 10);
  EXPECT(high == 0 && low >= after && low <= after + 2);
  __asm__ volatile("time_cfg %0, %2; time %1, nz, 1f; move %1, 77; 1:"
                   : "=r"(before), "=r"(after)
                   : "r"(COUNT_INSTRUCTIONS << 1 | 1));
  EXPECT(before >= low && after == 77);
  for (uint32_t i = 0; i < 32; ++i) __asm__ volatile("nop");
  __asm__ volatile("time %0" : "=r"(after));
  EXPECT(after >= 2 && after <= 60);
}

/// Faults of tasklet 0.
static void faults(void) {
  if (me() == 1) barrier_wait(&all);
  if (me() != 0) return;
  while (read_run(1)) continue;
  if (topic == kWaitingFault) __asm__ volatile("resume zero, 1");
  if (topic == kMissingFault) __asm__ volatile("resume zero, 4");
  if (topic == kClearFault) __asm__ volatile("clr_run zero, 1");
}

int main(void) {
  if (topic == kTransfers) transfers();
  if (topic == kRunBits) run_bits();
  if (topic == kPairs) pairs();
  if (topic == kTimes) times();
  if (topic > kTimes) faults();
  return 0;
}
