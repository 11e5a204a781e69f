// Runs until the host opens the gate, for at most `patience` iterations.
#include <defs.h>
#include <mutex.h>
#include <stdint.h>

MUTEX_INIT(turn);

__host volatile uint32_t gate;
__host volatile uint32_t started;
__host uint32_t patience = 20000000;
__host uint32_t finished;
__host uint32_t input = 5;
__host uint32_t output;

int main(void) {
  started = 1;
  for (uint32_t i = 0; i < patience && gate == 0; ++i) {
    mutex_lock(turn);
    mutex_unlock(turn);
  }
  finished += gate;
  output = 2 * input;
  return 0;
}
