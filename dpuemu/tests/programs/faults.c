// Every tasklet writes a word of MRAM; then one of them causes a fault.
#include <alloc.h>
#include <assert.h>
#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <mram.h>
#include <mram_unaligned.h>
#include <mutex.h>
#include <sem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <vmutex.h>

#include "fault_kind.h"

STDOUT_BUFFER_INIT(64)
BARRIER_INIT(all, NR_TASKLETS);
BARRIER_INIT(short_of_one, NR_TASKLETS);
MUTEX_INIT(lock);
VMUTEX_INIT(virtual_lock, 8, 1)
SEMAPHORE_INIT(empty, 0);

__host uint32_t what;
__host uint32_t who;
__host uint32_t input;
__host uint32_t finished;
__host uint32_t distance;

extern uint8_t __sys_wram_end[];
static volatile uint32_t zero;
static volatile uint32_t sink;

static __noinline uint32_t use_stack(uint32_t bytes_left) {
  volatile uint8_t frame[240];
  frame[bytes_left % 240] = 1;
  if (bytes_left < 256) return frame[0];
  return use_stack(bytes_left - 256) + frame[bytes_left % 240];
}

// Uses the tasklet's stack down to the address `last`, and writes the byte there.
static __noinline uint32_t use_stack_to(uintptr_t last) {
  volatile uint8_t frame[240];
  frame[last % 240] = 1;
  if ((uintptr_t)frame - last < 512) return *(volatile uint8_t *)last = 1;
  return use_stack_to(last) + frame[last % 240];
}

static uint32_t __attribute__((noinline)) with_assembly(uint32_t x) {
  __asm__ volatile("mul_step %0, %0, 7" : "+r"(x));
  return x;
}

static void do_it(void) {
  volatile int32_t low = (int32_t)0x80000000;
  volatile int64_t wide = 5;
  __dma_aligned uint64_t words[2] = {0, 0};
  switch (what) {
    case FAULT_WILD_READ:
      sink = *(volatile uint32_t *)(0x0FF00000 + zero);
      break;
    case FAULT_WILD_WRITE:
      *(volatile uint32_t *)(0x7FF00100 + zero) = 1;
      break;
    case FAULT_FAR_BEHIND_WRAM:
      *(volatile uint8_t *)(__sys_wram_end + 0x3000 + zero) = 1;
      break;
    case FAULT_FIRST_BYTE_BEHIND_WRAM:
      *(volatile uint8_t *)(__sys_wram_end + zero) = 1;
      break;
    case FAULT_BEFORE_WRAM:
      *(volatile uint8_t *)(__sys_wram_end - 65536 - 8 + zero) = 1;
      break;
    case FAULT_NULL_READ:
      sink = *(volatile uint32_t *)(uintptr_t)zero;
      break;
    case FAULT_NULL_WRITE:
      *(volatile uint32_t *)(uintptr_t)zero = 1;
      break;
    case FAULT_NULL_CALL:
      ((void (*)(void))(uintptr_t)zero)();
      break;
    case FAULT_OWN_TEXT_WRITE:
      *(volatile uint8_t *)((uintptr_t)&use_stack + zero) = 0;
      break;
    case FAULT_MRAM_POINTER_AS_WRAM:
      sink = *(volatile uint32_t *)((uintptr_t)DPU_MRAM_HEAP_POINTER + zero);
      break;
    case FAULT_DIRECT_BEYOND_MRAM:
      sink = *(__mram_ptr volatile uint32_t *)(0x0C000000 + zero);
      break;
    case FAULT_DIRECT_BEYOND_MRAM_AFTER_A_RIGHT_ONE:
      sink = *(__mram_ptr volatile uint32_t *)DPU_MRAM_HEAP_POINTER;
      sink = *(__mram_ptr volatile uint32_t *)(0x0C000000 + zero);
      break;
    case FAULT_FAR_PAST_WRAM:
      sink = *(volatile uint8_t *)(__sys_wram_end + distance);
      break;
    case FAULT_STACK:
      sink = use_stack(1 << 20);
      break;
    case FAULT_DIVISION_32:
      sink = (uint32_t)(low / (int32_t)zero);
      break;
    case FAULT_REMAINDER_32:
      sink = 17 % zero;
      break;
    case FAULT_DIVISION_64:
      sink = (uint32_t)(wide / (int64_t)zero);
      break;
    case FAULT_DIVISION_UNSIGNED_64:
      sink = (uint32_t)((uint64_t)wide / (uint64_t)zero);
      break;
    case FAULT_ASSERT:
      assert(zero == 1);
      break;
    case FAULT_HALT:
      halt();
      break;
    case FAULT_PRINT_AND_HALT:
      puts("before the end"), halt();
      break;
    case FAULT_ABORT:
      abort();
      break;
    case FAULT_INSTRUCTION:
      __asm__ volatile("fault 42");
      break;
    case FAULT_ASSEMBLY:
      sink = with_assembly(zero);
      break;
    case FAULT_TRAP:
      __builtin_trap();
      break;
    case FAULT_HEAP_FULL:
      for (;;) mem_alloc(1024);
    case FAULT_FSB_HEAP_FULL:
      fsb_alloc(1024, 64);
      break;
    case FAULT_BUDDY_HEAP_FULL:
      buddy_init(65536);
      break;
    case FAULT_BUDDY_NOT_READY:
      sink = (uint32_t)(uintptr_t)buddy_alloc(16);
      break;
    case FAULT_UNALIGNED_MRAM:
      mram_write_unaligned((uint8_t *)words + 1, (__mram_ptr void *)DPU_MRAM_HEAP_POINTER, 4);
      break;
    case FAULT_DMA_OUT_OF_WRAM:
      mram_read((__mram_ptr void *)DPU_MRAM_HEAP_POINTER, __sys_wram_end - 8, 64);
      break;
    case FAULT_MUTEX_TWICE:
      mutex_lock(lock), mutex_lock(lock);
      break;
    case FAULT_VMUTEX_TWICE:
      vmutex_lock(&virtual_lock, 3), vmutex_lock(&virtual_lock, 3);
      break;
    case FAULT_SEMAPHORE:
      sem_take(&empty);
      break;
    case FAULT_NEVER_NOTIFIED:
      handshake_wait_for((who + 1) % NR_TASKLETS);
      break;
    case FAULT_NEVER_AWAITED:
      handshake_notify();
      break;
    case FAULT_WILD_STRING:
      printf("%s", (const char *)(0x0FF00000 + zero));
      break;
    case FAULT_WIDE_PRINT:
      printf("%*d%.*d", (int)distance, 1, (int)distance, 1);
      break;
    case FAULT_WILD_MUTEX:
      mutex_lock((mutex_id_t)&sink);
      break;
    case FAULT_ENDLESS:
      for (;;) sink = sink + 1;
    case FAULT_ENDLESS_CALLS:
      for (;;) mram_read((__mram_ptr void *)DPU_MRAM_HEAP_POINTER, words, 8);
    case FAULT_OTHER_PE:
      *(volatile uint32_t *)(__sys_wram_end - 4 + distance) = 1;
      break;
    case FAULT_DEEP_STACK:
      sink = use_stack(20000);
      break;
    case FAULT_STACK_OF:  // see PE_STACK_BLOCK_BYTES in calls.h
      sink = use_stack_to(*(uint32_t *)(((uintptr_t)words | 0xFFFF) - 7) - distance);
      break;
    default:
      break;
  }
}

int main(void) {
  __dma_aligned uint64_t word = input + me() * me();
  mram_write(&word, (__mram_ptr void *)((__mram_ptr uint8_t *)DPU_MRAM_HEAP_POINTER + 8 * me()), 8);
  barrier_wait(&all);
  if (what == FAULT_BARRIER) {
    if (me() != who) barrier_wait(&short_of_one);
  } else if (me() == who) {
    do_it();
  }
  mutex_lock(lock);
  ++finished;
  mutex_unlock(lock);
  return 0;
}
