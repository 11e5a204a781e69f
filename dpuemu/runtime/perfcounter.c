#include <perfcounter.h>

// The loader stores the clock of the chip. The variable has a value here so that it is in the file.
const volatile uint32_t CLOCKS_PER_SEC = 1;

void __pe_read_counters(perfcounter_pair_t *pair, bool resets);

perfcounter_pair_t perfcounter_get_both(bool should_reset) {
  perfcounter_pair_t pair;
  __pe_read_counters(&pair, should_reset);
  return pair;
}
