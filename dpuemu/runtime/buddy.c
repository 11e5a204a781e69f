// Free blocks of each order form a doubly linked list inside the blocks. For each unit of 16 bytes,
// one byte describes the block that begins in this unit.
#include <alloc.h>
#include <buddy_alloc.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "fault.h"
#include "turn.h"

enum {
  kUnitBytes = 16,
  kOrders = 13
};  // a block of order n has 16 << n bytes; order 12 is all of WRAM

enum {
  kNothing = 0,
  kFree = 0x40,
  kTaken = 0x80,
  kOrderMask = 0x3F
};  // kFree and kTaken are added to the order of the block

typedef struct free_block {
  struct free_block *next;
  struct free_block *previous;
} free_block_t;

static struct {
  uint8_t *bytes;   // NULL before buddy_init
  uint8_t *starts;  // for each unit: kNothing, kFree + order or kTaken + order
  uint32_t units;
  free_block_t *free[kOrders];
} heap;

static free_block_t *block_at(uint32_t unit) {
  return (free_block_t *)(heap.bytes + unit * kUnitBytes);
}

static uint32_t unit_of(const void *block) {
  return (uint32_t)((const uint8_t *)block - heap.bytes) / kUnitBytes;
}

static void add_free(uint32_t unit, uint32_t order) {
  free_block_t *block = block_at(unit);
  block->previous = NULL;
  block->next = heap.free[order];
  if (block->next != NULL) block->next->previous = block;
  heap.free[order] = block;
  heap.starts[unit] = (uint8_t)(kFree + order);
}

static void remove_free(uint32_t unit, uint32_t order) {
  free_block_t *block = block_at(unit);
  if (block->next != NULL) block->next->previous = block->previous;
  if (block->previous != NULL) {
    block->previous->next = block->next;
  } else {
    heap.free[order] = block->next;
  }
  heap.starts[unit] = kNothing;
}

// Returns the order of the smallest block for 1 to 65536 bytes.
static uint32_t order_for(size_t size) {
  uint32_t order = 0;
  while (((size_t)kUnitBytes << order) < size) ++order;
  return order;
}

// Shrinks the taken block at `unit` from order `from` to order `to`, and frees the rest of the
// block.
static void split_taken(uint32_t unit, uint32_t from, uint32_t to) {
  heap.starts[unit] = (uint8_t)(kTaken + to);
  while (from-- > to) add_free(unit + (1u << from), from);
}

static void free_taken(uint32_t unit) {
  uint32_t order = heap.starts[unit] & kOrderMask;
  __pe_check_memory(block_at(unit), kUnitBytes << order, PE_CHECK_FREED);
  heap.starts[unit] = kNothing;
  for (; order + 1 < kOrders; ++order) {
    uint32_t buddy = unit ^ (1u << order);
    if (buddy >= heap.units || heap.starts[buddy] != kFree + order) break;
    remove_free(buddy, order);
    unit &= ~(1u << order);
  }
  add_free(unit, order);
}

// Returns the first unit of the taken block that contains the pointer, or heap.units if no taken
// block contains it.
static uint32_t find_taken(const void *pointer) {
  uintptr_t offset = (uintptr_t)pointer - (uintptr_t)heap.bytes;
  if (heap.bytes == NULL || (uintptr_t)pointer % 8 != 0 || offset >= heap.units * kUnitBytes)
    return heap.units;
  for (uint32_t order = 0; order < kOrders; ++order) {
    uint32_t unit = (uint32_t)(offset / kUnitBytes) & ~((1u << order) - 1);
    uint8_t start = heap.starts[unit];
    if (start != kNothing) return start >= kTaken + order ? unit : heap.units;
  }
  return heap.units;
}

static void reset(void) {
  memset(heap.free, 0, sizeof heap.free);
  if (heap.bytes == NULL) return;
  __pe_check_memory(heap.bytes, heap.units * kUnitBytes, PE_CHECK_FREED);
  memset(heap.starts, kNothing, heap.units);
  // Larger blocks have lower addresses than smaller blocks. Therefore the address of each block is
  // a multiple of its size.
  uint32_t unit = 0;
  for (uint32_t order = kOrders; order-- > 0;) {
    if (heap.units - unit < 1u << order) continue;
    add_free(unit, order);
    unit += 1u << order;
  }
}

void buddy_reset(void) {
  __pe_lock_heap();
  reset();
  unlock_heap();
}

void buddy_init(size_t size_of_heap) {
  heap.units = size_of_heap / kUnitBytes;
  heap.bytes = mem_alloc(heap.units * kUnitBytes);
  heap.starts = mem_alloc(heap.units);
  buddy_reset();
}

static void *take(size_t size) {
  if (heap.bytes == NULL) __pe_fault(PE_FAULT_BUDDY_NOT_READY, 0);
  if (size == 0 || size > heap.units * kUnitBytes) {
    errno = EINVAL;
    return NULL;
  }
  uint32_t wanted = order_for(size);
  for (uint32_t order = wanted; order < kOrders; ++order) {
    if (heap.free[order] == NULL) continue;
    uint32_t unit = unit_of(heap.free[order]);
    remove_free(unit, order);
    split_taken(unit, order, wanted);
    __pe_check_memory(block_at(unit), kUnitBytes << wanted, PE_CHECK_TAKEN);
    return block_at(unit);
  }
  errno = ENOMEM;
  return NULL;
}

void *buddy_alloc(size_t size) {
  __pe_lock_heap();
  void *block = take(size);
  unlock_heap();
  return block;
}

void buddy_free(void *pointer) {
  if (pointer == NULL) return;
  __pe_lock_heap();
  uint32_t unit = find_taken(pointer);
  if (unit == heap.units)
    errno = EINVAL;
  else
    free_taken(unit);
  unlock_heap();
}

static void *resize(const void *ptr, size_t size) {
  uint32_t unit = find_taken(ptr);
  if (unit == heap.units || size > heap.units * kUnitBytes) {
    errno = EINVAL;
    return NULL;
  }
  uint32_t order = heap.starts[unit] & kOrderMask;
  uint32_t wanted = order_for(size);
  if (wanted <= order) {
    split_taken(unit, order, wanted);
    uint8_t *end = (uint8_t *)block_at(unit) + (kUnitBytes << wanted);
    __pe_check_memory(end, (kUnitBytes << order) - (kUnitBytes << wanted), PE_CHECK_FREED);
    return block_at(unit);
  }
  void *moved = take(size);
  if (moved == NULL) return NULL;
  memcpy(moved, block_at(unit), (size_t)kUnitBytes << order);
  free_taken(unit);
  return moved;
}

void *buddy_realloc(void *ptr, size_t size) {
  if (ptr == NULL) return buddy_alloc(size);
  if (size == 0) {
    buddy_free(ptr);
    return ptr;
  }
  __pe_lock_heap();
  void *moved = resize(ptr, size);
  unlock_heap();
  return moved;
}
