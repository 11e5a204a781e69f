/* Practices of published programs that work on a DPU: addresses in integers, old C, structures
   shared with the host, barriers whose fields the program sets, names of host functions. */
#include <alloc.h>
#include <atomic_bit.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <mutex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "shared_struct.h"

__host struct shared arguments;
__host struct shared answer;
__host uint32_t sum;
__host uint32_t offset_of_next;

ATOMIC_BIT_INIT(hand_locks)[4];
barrier_t hand[4];
BARRIER_INIT(ready, NR_TASKLETS);

/* Names that the host's libraries and the emulator's process also use. */
int read = 3;
int malloc(int x) { return x + 1; }
int write(int x) { return x * 2; }
uint32_t environ[4];
int _init(void) { return 5; }

main() {
  int i;
  if (me() == 0) {
    mem_reset();
    for (i = 0; i < 4; i++) {
      hand[i].wait_queue = 0xff;
      hand[i].count = NR_TASKLETS / 4;
      hand[i].initial_count = NR_TASKLETS / 4;
      hand[i].lock = (uint8_t)(uint32_t)&ATOMIC_BIT_GET(hand_locks)[i];
    }
    sum = 0;
  }
  barrier_wait(&ready);

  /* MRAM and WRAM addresses in integers. */
  uint32_t mram = (uint32_t)DPU_MRAM_HEAP_POINTER + me() * 64;
  uint32_t *block = mem_alloc(64);
  uint32_t address = (uint32_t)block;
  uint32_t end = address + 64;
  mram_read((__mram_ptr void const *)mram, block, 64);
  uint32_t own = 0;
  for (uint32_t j = address; j < end; j += 4) own += *(uint32_t *)j;
  barrier_wait(&hand[me() % 4]);
  mutex_lock_by_name(own);
  barrier_wait(&ready);

  if (me() == 0) {
    int *kept = 0x100;
    uint32_t number = block;
    answer = arguments;
    answer.wide += (uint32_t)kept + (number == address);
    answer.flag = !arguments.flag;
    answer.kind = SECOND;
    answer.small += malloc(1) + write(2) + read + _init() + environ[0];
    offset_of_next = sizeof(struct shared);
    printf("%lu %d %lld\n", sum, 5, (uint64_t)7);
  }
  return 0;
}

mutex_lock_by_name(uint32_t own) {
  mutex_lock(&ATOMIC_BIT_GET(hand_locks)[0]);
  sum += own;
  mutex_unlock(&ATOMIC_BIT_GET(hand_locks)[0]);
}
