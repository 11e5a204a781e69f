#include <perfcounter.h>

#include "../calls.h"

const volatile uint32_t CLOCKS_PER_SEC = PE_CLOCKS_PER_SECOND;
