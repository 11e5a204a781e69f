#include <alloc.h>
#include <stdint.h>

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

void *__pe_mem_alloc(size_t size, uintptr_t alignment) {
  __pe_lock_heap();
  uintptr_t buffer = align_up(__sys_heap_pointer, alignment);
  uintptr_t end = (uintptr_t)__sys_wram_end;
  if (buffer > end || size > end - buffer) __pe_fault(PE_FAULT_HEAP_FULL, 0);
  if (size != 0) __sys_heap_pointer = buffer + size;
  unlock_heap();
  return (void *)buffer;
}

void *mem_alloc(size_t size) { return __pe_mem_alloc(size, 8); }

void *mem_reset(void) {
  __pe_lock_heap();
  void *start = (void *)align_up((uintptr_t)__sys_heap_pointer_reset, 8);
  __sys_heap_pointer = (uintptr_t)start;
  unlock_heap();
  return start;
}
