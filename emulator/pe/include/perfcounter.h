/// perfcounter.h: the PE's counter of modelled cycles or instructions.
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
  COUNT_DISABLE_BOTH = 6,  // v1B only
  COUNT_ENABLE_BOTH = 7,   // v1B only
} perfcounter_config_t;

/// Number of cycles of the PE per second.
extern const volatile uint32_t CLOCKS_PER_SEC;

/// Returns the value of the counter. The value is undefined before the first perfcounter_config.
perfcounter_t perfcounter_get(void);

/// Selects the counted event; if reset_value is true, resets the counter to 0. Returns the value of the counter before this call.
perfcounter_t perfcounter_config(perfcounter_config_t config, bool reset_value);

#define perfcounter_get_both(should_reset)                                \
  do {                                                                    \
    _Static_assert(0, "the emulator does not have perfcounter_get_both"); \
  } while (0)

#endif  // PE_PERFCOUNTER_H
