#include <alloc.h>
#include <mutex.h>
#include <stdint.h>

#include "check.h"
#include "fault.h"
#include "heap.h"
#include "turn.h"

// Bounds of the heap, from program.ld.
extern uint8_t __sys_heap_pointer_reset[];
extern uint8_t __sys_wram_end[];

// The end of the last buffer. Like all variables in WRAM, this variable keeps its value over
// launches.
uintptr_t __sys_heap_pointer = (uintptr_t)__sys_heap_pointer_reset;

static uintptr_t align_up(uintptr_t address, uintptr_t alignment) {
  return (address + alignment - 1) & ~(alignment - 1);
}

// The lock that programs take around mem_alloc_nolock. Only such programs have it (heap_lock.c).
extern uint8_t __atomic_bit___heap_pointer __attribute__((weak));

static void lock(void) {
  if (&__atomic_bit___heap_pointer != NULL) mutex_lock(&__atomic_bit___heap_pointer);
  __pe_lock_heap();
}

static void unlock(void) {
  unlock_heap();
  if (&__atomic_bit___heap_pointer != NULL) mutex_unlock(&__atomic_bit___heap_pointer);
}

static void *allocate(size_t size, uintptr_t alignment) {
  uintptr_t buffer = align_up(__sys_heap_pointer, alignment);
  uintptr_t end = (uintptr_t)__sys_wram_end;
  if (buffer > end || size > end - buffer) __pe_fault(PE_FAULT_HEAP_FULL, 0);
  if (size != 0) __sys_heap_pointer = buffer + size;
  __pe_check_memory((void *)buffer, size, PE_CHECK_ALLOCATED);
  return (void *)buffer;
}

void *__pe_mem_alloc(size_t size, uintptr_t alignment) {
  lock();
  void *buffer = allocate(size, alignment);
  unlock();
  return buffer;
}

void *mem_alloc_nolock(size_t size) { return allocate(size, 8); }

void *mem_alloc(size_t size) { return __pe_mem_alloc(size, 8); }

void *mem_reset(void) {
  lock();
  void *start = (void *)align_up((uintptr_t)__sys_heap_pointer_reset, 8);
  __sys_heap_pointer = (uintptr_t)start;
  __pe_check_memory(start, 0, PE_CHECK_RESET);
  unlock();
  return start;
}
