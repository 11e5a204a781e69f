// Loops of `turns` iterations whose modelled cost the host checks.
#include <defs.h>
#include <mram.h>
#include <mutex.h>
#include <sem.h>
#include <stdint.h>
#include <string.h>

enum {
  kMultiply,
  kDivide,
  kDivideSigned,
  kDma,
  kMutex,
  kMutexWait,
  kSemaphoreWait,
  kAdd,
  kCopy,
  kMultiplyBytes,
  kMultiplyHalves,
  kMoveInMram,
  kScale,
  kSum,
  kSumOfUnknownLength,
  kSumToAnEnd
};

MUTEX_INIT(lock);
SEMAPHORE_INIT(gate, 0);
__mram_noinit uint64_t word;
__mram_noinit uint8_t block[2048];
__mram_noinit uint8_t other_block[2048];
__host uint32_t topic;
__host uint32_t turns;
__host uint32_t left;
__host uint32_t right;
volatile uint32_t sink;

static void work(void) {
  for (uint32_t i = 0; i < turns; ++i) sink = i;
}

// The loop of Arithmetic-Throughput of PrIM.
static void add(int32_t *elements) {
  for (uint32_t i = 0; i < 256; ++i) elements[i] += right;
}

static uint32_t __attribute__((noinline)) sum(const uint32_t *elements) {
  uint32_t total = 0;
  for (uint32_t i = 0; i < 256; ++i) total += elements[i];
  return total;
}

static uint32_t __attribute__((noinline)) sum_of_unknown_length(const uint32_t *elements,
                                                                uint32_t length) {
  uint32_t total = 0;
  for (uint32_t i = 0; i < length; ++i) total += elements[i];
  return total;
}

static uint32_t __attribute__((noinline)) sum_to_an_end(const uint32_t *elements) {
  uint32_t total = 0;
  for (const uint32_t *end = elements + 256; elements != end; ++elements) total += *elements;
  return total;
}

// Tasklets 0 to left - 1.
static void work_together(void) {
  static __dma_aligned int32_t elements[512];
  for (uint32_t i = 0; i < turns; ++i) {
    if (topic == kAdd) add(elements);
    if (topic == kCopy) mram_read(block, elements, right);
  }
}

int main(void) {
  static __dma_aligned uint64_t buffer;
  static uint32_t numbers[256];
  const volatile uint32_t *a = &left, *b = &right;
  if (topic == kAdd || topic == kCopy) {
    if (me() < left) work_together();
    return 0;
  }
  if (me() == 1) {  // waits for tasklet 0, which comes first
    if (topic != kMutexWait && topic != kSemaphoreWait) return 0;
    for (uint32_t i = 0; i < 100; ++i) sink = i;
    if (topic == kMutexWait) mutex_lock(lock), mutex_unlock(lock);
    if (topic == kSemaphoreWait) sem_take(&gate);
    return 0;
  }
  switch (topic) {
    case kMultiply:
      for (uint32_t i = 0; i < turns; ++i) sink = *a * *b;
      break;
    case kScale: {
      const uint32_t factor = *a;
      for (uint32_t i = 0; i < turns; ++i) sink = *b * factor;
      break;
    }
    case kMultiplyBytes:
      for (uint32_t i = 0; i < turns; ++i)
        sink = *(const volatile int8_t *)a * *(const volatile int8_t *)b;
      break;
    case kMultiplyHalves:
      for (uint32_t i = 0; i < turns; ++i)
        sink = *(const volatile int16_t *)a * *(const volatile int16_t *)b;
      break;
    case kMoveInMram:
      for (uint32_t i = 0; i < turns; ++i) memcpy(other_block, block, sizeof block);
      break;
    case kSum:
      for (uint32_t i = 0; i < turns; ++i) sink = sum(numbers);
      break;
    case kSumOfUnknownLength:
      for (uint32_t i = 0; i < turns; ++i) sink = sum_of_unknown_length(numbers, right);
      break;
    case kSumToAnEnd:
      for (uint32_t i = 0; i < turns; ++i) sink = sum_to_an_end(numbers);
      break;
    case kDivide:
      for (uint32_t i = 0; i < turns; ++i) sink = *a / *b;
      break;
    case kDivideSigned:
      for (uint32_t i = 0; i < turns; ++i) sink = (uint32_t)((int32_t)*a / (int32_t)*b);
      break;
    case kDma:
      for (uint32_t i = 0; i < turns; ++i) mram_read(&word, &buffer, 8);
      break;
    case kMutex:
      for (uint32_t i = 0; i < turns; ++i) mutex_lock(lock), mutex_unlock(lock);
      break;
    case kMutexWait:
      mutex_lock(lock);
      work();
      mutex_unlock(lock);
      break;
    default:
      work();
      sem_give(&gate);
  }
  return 0;
}
