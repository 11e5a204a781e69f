#include <perfcounter.h>

// The loader stores the clock of the chip. The variable has a value here so that it is in the file.
const volatile uint32_t CLOCKS_PER_SEC = 1;
