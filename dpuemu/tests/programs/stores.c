// Tasklets that wait for each other's stores without a call, and tasklets that compute for so long
// that they are interrupted.
#include "expect.h"

enum { kPass, kPassSlowly, kCompute };

static volatile uint32_t turn;
static volatile uint32_t looked;
__host uint64_t mixed[NR_TASKLETS];
__host double summed[NR_TASKLETS];

static void pass_turns(void) {
  const uint32_t turns = 500;
  for (uint32_t i = 0; i < turns; ++i) {
    while (turn != i * NR_TASKLETS + me());
    ++turn;
  }
  if (me() != 0) return;
  while (turn < turns * NR_TASKLETS);
  EXPECT(turn == turns * NR_TASKLETS);
}

// The loop stores, so the compiler does not recognise that it waits. The last tasklet is the first
// that does not wait, so every tasklet that starts earlier must be interrupted.
static void pass_slowly(void) {
  while (turn != NR_TASKLETS - 1 - me()) ++looked;
  ++turn;
  if (me() == 0) EXPECT(turn == NR_TASKLETS);
}

// Keeps values in many registers, also those of floating point.
static void compute(void) {
  uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
  double x = 1, y = 2, z = 3;
  for (uint32_t i = 0; i < 20000000; ++i) {
    a = a * 6364136223846793005u + 1, b ^= a >> 7, c += b, d ^= c << 3, e += d ^ i,
    f = (f << 1 | f >> 63) + e;
    x = x * 0.5 + 1, y = y * 0.25 + x, z = z * 0.125 + y;
  }
  mixed[me()] = a ^ b ^ c ^ d ^ e ^ f;
  summed[me()] = x + y + z;
  EXPECT(mixed[me()] != 0);
}

int main(void) {
  if (topic == kPass) pass_turns();
  if (topic == kPassSlowly) pass_slowly();
  if (topic == kCompute) compute();
  return 0;
}
