// Tasklets that wait for each other's stores without a call, and tasklets that compute for so long that they are interrupted.
#include "expect.h"

enum { kTurns = 3 };

static volatile uint32_t turn;
__host uint64_t mixed[NR_TASKLETS];
__host double summed[NR_TASKLETS];

static void pass_turns(void) {
  for (uint32_t i = 0; i < kTurns; ++i) {
    while (turn != i * NR_TASKLETS + me());
    ++turn;
  }
  if (me() != 0) return;
  while (turn != kTurns * NR_TASKLETS);
  EXPECT(turn == kTurns * NR_TASKLETS);
}

// Keeps values in many registers, also those of floating point.
static void compute(void) {
  uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
  double x = 1, y = 2, z = 3;
  for (uint32_t i = 0; i < 40000000; ++i) {
    a = a * 6364136223846793005u + 1, b ^= a >> 7, c += b, d ^= c << 3, e += d ^ i, f = (f << 1 | f >> 63) + e;
    x = x * 0.5 + 1, y = y * 0.25 + x, z = z * 0.125 + y;
  }
  mixed[me()] = a ^ b ^ c ^ d ^ e ^ f;
  summed[me()] = x + y + z;
  EXPECT(mixed[me()] != 0);
}

int main(void) {
  if (topic == 0) pass_turns();
  if (topic == 1) compute();
  return 0;
}
