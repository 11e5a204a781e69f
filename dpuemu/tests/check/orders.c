// Programs without a data race. The results of those in DEPENDS_ON_THE_ORDER (test_check.py) depend
// on the order of the tasklets, which only `--schedules` finds.
#include "case.h"

MUTEX_INIT(a);
MUTEX_INIT(b);
BARRIER_INIT(all, NR_TASKLETS)

__host uint32_t order_result;
uint32_t value = 1, other;

CASE(fine, doubles_or_adds) {
  if (me() > 1) return;
  mutex_lock(a);
  value = me() == 0 ? 2 * value : value + 3;
  order_result = value;
  mutex_unlock(a);
}

// Another tasklet may change the value between the two locks.
CASE(fine, reads_and_writes_under_two_locks) {
  mutex_lock(a);
  uint32_t old = value;
  mutex_unlock(a);
  mutex_lock(a);
  order_result = value = old + 1;
  mutex_unlock(a);
}

CASE(fine, locks_in_two_orders) {
  if (me() > 1) return;
  delay(1);
  mutex_lock(me() == 0 ? a : b);
  mutex_lock(me() == 0 ? b : a);
  ++value;
  mutex_unlock(a);
  mutex_unlock(b);
}

// Only if the reader comes after the store of 7777.
CASE(fine, one_switch_of_ten_thousand) {
  if (me() == 0)
    for (uint32_t i = 0; i < 10000; ++i) {
      mutex_lock(a);
      other = i;
      mutex_unlock(a);
    }
  if (me() == 1) {
    delay(1);
    mutex_lock(a);
    if (other == 7777) order_result = 1;
    mutex_unlock(a);
  }
}

CASE(fine, copy_under_a_mutex) {
  uint32_t own = 7;
  if (me() > 1) return;
  mutex_lock(a);
  if (me() == 0) memcpy(&value, &own, sizeof own);
  if (me() == 1) order_result = value;
  mutex_unlock(a);
}

CASE(fine, sum_under_a_mutex) {
  if (me() > 2) return;
  mutex_lock(a);
  value += me();
  mutex_unlock(a);
  if (me() == 0) order_result = 5;
}

CASE(fine, each_its_own) {
  static uint32_t own[NR_TASKLETS];
  for (uint32_t i = 0; i < 100; ++i) own[me()] += i;
  barrier_wait(&all);
  if (me() == 0) order_result = own[1] + own[2];
}

// Both programs have the same heap.
CASE(fine, input_kept_over_a_load, early) {
  __dma_aligned static uint32_t own[16];
  if (me() != 0) return;
  mram_read((__mram_ptr void *)INPUT, own, 64);
  order_result = own[3];
}
