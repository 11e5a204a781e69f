// Variables of every kind: a load sets them, a launch keeps them.
#include <alloc.h>
#include <defs.h>
#include <mram.h>
#include <stdint.h>

struct node {
  struct node *next;
  uint32_t value;
};

static uint32_t add(uint32_t a, uint32_t b) { return a + b; }
static uint32_t multiply(uint32_t a, uint32_t b) { return a * b; }

__host uint32_t launches = 100;
__host uint8_t six_bytes[6] = {1, 2, 3, 4, 5, 6};
__host uint32_t number;
uint64_t plain = 0x1122334455667788;
uint32_t zeroed[4];
const uint32_t table[3] = {7, 8, 9};
const uint32_t *into_table = &table[1];
uint32_t *into_zeroed = &zeroed[2];
struct node last = {0, 30}, first = {&last, 20};
uint32_t (*volatile operations[2])(uint32_t, uint32_t) = {add, multiply};
static const char *words[2] = {"zero", "one"};
__mram uint64_t initialised_in_mram = 77;
__mram_noinit uint64_t left_in_mram;
static __mram_noinit uint32_t left_static[4];
__mram_noinit uint64_t left_last;

__host uint32_t results[8];
__host uint64_t heap_word;  // the previous first word of the heap

int main(void) {
  if (me() != 0) return 0;
  launches += 1;
  plain += 1;
  zeroed[2] += 5;
  results[0] = *into_table;
  results[1] = *into_zeroed;
  results[2] = first.next->value;
  results[3] = operations[0](number, 3);
  results[4] = operations[1](number, 3);
  results[5] = (uint8_t)words[1][2];
  mem_reset();
  volatile uint64_t *word = mem_alloc(8);
  heap_word = *word;
  *word = 0xABCD0000 + launches;
  initialised_in_mram += 1;
  left_in_mram += 1;
  left_static[0] += 1;
  left_last += 1;
  return 0;
}
