/// perfcounter.h: the PE's counters of modelled cycles and instructions. Chip v1A counts one of
/// them at a time.
#ifndef PE_PERFCOUNTER_H
#define PE_PERFCOUNTER_H

#include <stdbool.h>
#include <stdint.h>

typedef uint64_t perfcounter_t;

typedef enum _perfcounter_config_t {
  COUNT_SAME = 0,  // does not change the selection
  COUNT_CYCLES = 1,
  COUNT_INSTRUCTIONS = 2,
  COUNT_NOTHING = 3,
  COUNT_DISABLE_BOTH = 6,  // not on v1A
  COUNT_ENABLE_BOTH = 7,   // not on v1A; perfcounter_get then returns the cycles
} perfcounter_config_t;

/// Number of cycles of the PE per second.
extern const volatile uint32_t CLOCKS_PER_SEC;

/// Returns the value of the counter. The value is undefined before the first perfcounter_config.
perfcounter_t perfcounter_get(void);

/// Selects the counted event; if reset_value is true, resets the counter to 0. Returns the value of
/// the counter before this call.
perfcounter_t perfcounter_config(perfcounter_config_t config, bool reset_value);

#ifdef __dpu_v1A__
#define perfcounter_get_both(should_reset) \
  ({ _Static_assert(0, "chip v1A does not have perfcounter_get_both; compile for chip v1B"); })
#else
typedef struct {
  perfcounter_t cycles;
  perfcounter_t instr;
} perfcounter_pair_t;

/// Returns the values of both counters, starts both, and resets them to 0 if should_reset is true.
perfcounter_pair_t perfcounter_get_both(bool should_reset);
#endif

#endif  // PE_PERFCOUNTER_H
