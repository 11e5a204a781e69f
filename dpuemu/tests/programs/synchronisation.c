// Barriers, mutexes, semaphores, handshakes, atomic bits, with 24 tasklets.
#include <alloc.h>
#include <atomic_bit.h>
#include <barrier.h>
#include <buddy_alloc.h>
#include <errno.h>
#include <fsb_allocator.h>
#include <handshake.h>
#include <mram.h>
#include <mutex.h>
#include <mutex_pool.h>
#include <sem.h>
#include <vmutex.h>

#include "expect.h"

enum {
  kBarrier,
  kBarrierSizes,
  kMutex,
  kTrylock,
  kPool,
  kVirtual,
  kSemaphore,
  kProducer,
  kWaiterFirst,
  kNotifierFirst,
  kAlready,
  kChain,
  kAtomicBit,
  kHeapOrder,
  kHeapLock,
  kWaitOrder
};

BARRIER_INIT(all, NR_TASKLETS)
BARRIER_INIT(end_of_round, NR_TASKLETS)
MUTEX_INIT(lock);
MUTEX_INIT(held);
MUTEX_POOL_INIT(pool, 8)
VMUTEX_INIT(virtual_locks, 64, 2)
SEMAPHORE_INIT(three, 3)
SEMAPHORE_INIT(filled, 0)
SEMAPHORE_INIT(two_short, -1)
SEMAPHORE_INIT(free_slots, 4)
ATOMIC_BIT_INIT(bits)[4];
ATOMIC_BIT_INIT(lone);
barrier_t by_hand;

static volatile uint32_t rounds[NR_TASKLETS], counts[64], unguarded, inside, most_inside;
__host uint32_t orders[NR_TASKLETS];
__host uint32_t lost_without_lock;

// Lets other tasklets run.
static void pause(uint32_t times) {
  static __dma_aligned uint8_t word[8 * NR_TASKLETS];
  for (uint32_t i = 0; i < times; ++i)
    mram_read((__mram_ptr void *)DPU_MRAM_HEAP_POINTER, word + 8 * me(), 8);
}

static void bump(volatile uint32_t *count) {
  uint32_t value = *count;
  pause(1);
  *count = value + 1;
}

static void barriers(void) {
  for (uint32_t round = 1; round <= 20; ++round) {
    pause(me() * round % 5);
    rounds[me()] = round;
    barrier_wait(&all);
    for (uint32_t i = 0; i < NR_TASKLETS; ++i) EXPECT(rounds[i] == round);
    barrier_wait(&all);
  }
}

static void barrier_of(uint32_t tasklets) {
  if (me() == 0) {
    by_hand.wait_queue = 0xFF;
    by_hand.count = (uint8_t)tasklets;
    by_hand.initial_count = (uint8_t)tasklets;
    by_hand.lock = (uint8_t)(uintptr_t)&ATOMIC_BIT_GET(bits)[1];
    for (uint32_t i = 0; i < NR_TASKLETS; ++i) rounds[i] = 0;
  }
  barrier_wait(&all);
  if (me() < tasklets) {
    for (uint32_t round = 1; round <= 3; ++round) {
      pause((me() + round) % 3);
      rounds[me()] = round;
      barrier_wait(&by_hand);
      for (uint32_t i = 0; i < tasklets; ++i) EXPECT(rounds[i] == round);
      barrier_wait(&by_hand);
    }
  }
  barrier_wait(&end_of_round);
}

static void mutexes(void) {
  for (uint32_t i = 0; i < 10; ++i) {
    bump(&unguarded);
    mutex_lock(lock);
    bump(&counts[0]);
    mutex_unlock(MUTEX_GET(lock));
  }
  barrier_wait(&all);
  EXPECT(counts[0] == 10 * NR_TASKLETS);
  lost_without_lock = 10 * NR_TASKLETS - unguarded;
}

static void trylock(void) {
  if (me() == 0) {
    EXPECT(mutex_trylock(held));
    EXPECT(!mutex_trylock(held));
  }
  barrier_wait(&all);
  if (me() == 1) EXPECT(!mutex_trylock(held));
  barrier_wait(&all);
  if (me() == 1) mutex_unlock(held);
  barrier_wait(&all);
  if (me() == 2) EXPECT(mutex_trylock(held));
  barrier_wait(&all);
  if (me() == 2) mutex_unlock(held);
  barrier_wait(&all);
  if (mutex_trylock(held)) {
    ++counts[0];
    pause(100);
    mutex_unlock(held);
  }
  barrier_wait(&all);
  EXPECT(counts[0] >= 1 && counts[0] < NR_TASKLETS);
}

static void pool_of_mutexes(void) {
  for (uint16_t i = 0; i < 32; ++i) {
    uint16_t id = (uint16_t)((i + 5 * me()) % 32 + 1024);
    mutex_pool_lock(&pool, id);
    bump(&counts[id % 32]);
    mutex_pool_unlock(&pool, id);
  }
  barrier_wait(&all);
  for (uint32_t i = 0; i < 32; ++i) EXPECT(counts[i] == NR_TASKLETS);
  // Numbers with equal low three bits share a mutex.
  if (me() == 0) {
    mutex_pool_lock(&pool, 3);
    EXPECT(!mutex_trylock(&pool.hw_mutexes[3]));
    EXPECT(mutex_trylock(&pool.hw_mutexes[4]));
    mutex_pool_unlock(&pool, 12);
    mutex_pool_unlock(&pool, 11);
    EXPECT(mutex_trylock(&pool.hw_mutexes[3]));
  }
}

static void virtual_mutexes(void) {
  for (uint16_t i = 0; i < 64; ++i) {
    uint16_t id = (uint16_t)((i + 7 * me()) % 64);
    vmutex_lock(&virtual_locks, id);
    bump(&counts[id]);
    vmutex_unlock(&virtual_locks, id);
  }
  barrier_wait(&all);
  for (uint32_t i = 0; i < 64; ++i) EXPECT(counts[i] == NR_TASKLETS);
  for (uint32_t i = 0; i < 8; ++i) EXPECT(virtual_locks.vm[i] == 0);
  barrier_wait(&all);
  if (me() == 0) {
    // Adjacent numbers have separate mutexes.
    vmutex_lock(&virtual_locks, 17);
    vmutex_lock(&virtual_locks, 18);
    EXPECT(virtual_locks.vm[2] == 6);
    vmutex_unlock(&virtual_locks, 17);
    EXPECT(virtual_locks.vm[2] == 4);
  }
}

static void semaphore(void) {
  for (uint32_t i = 0; i < 3; ++i) {
    sem_take(&three);
    ++inside;
    if (inside > most_inside) most_inside = inside;
    pause(3);
    --inside;
    sem_give(&three);
  }
  barrier_wait(&all);
  EXPECT(most_inside == 3);
  EXPECT(three.count == 3);
  barrier_wait(&all);
  // Below zero at the start: it needs two more units before a tasklet can take one.
  if (me() == 0) {
    sem_give(&two_short);
    pause(20);
    counts[1] = 1;
    sem_give(&two_short);
  } else if (me() == 1) {
    sem_take(&two_short);
    EXPECT(counts[1] == 1);
  }
}

static void producer(void) {
  static volatile uint32_t slots[4];
  if (me() == 0) {
    for (uint32_t i = 0; i < 100; ++i) {
      sem_take(&free_slots);
      slots[i % 4] = i;
      sem_give(&filled);
    }
  } else if (me() == 1) {
    for (uint32_t i = 0; i < 100; ++i) {
      sem_take(&filled);
      EXPECT(slots[i % 4] == i);
      pause(i % 3);
      sem_give(&free_slots);
    }
  }
}

// Tasklet 2 waits for tasklet 5; one of the two is late.
static void handshake(uint32_t late) {
  if (me() != 2 && me() != 5) return;
  if (me() == late) pause(30);
  counts[me()] = 1;
  if (me() == 5) {
    handshake_notify();
    if (late == 2) EXPECT(counts[2] == 1);  // a notifier waits too
  } else {
    EXPECT(handshake_wait_for(5) == 0);
    EXPECT(counts[5] == 1);
  }
}

static void already(void) {
  if (me() == 2) {
    EXPECT(handshake_wait_for(1) == 0);
    counts[2] = 1;
  } else if (me() == 3) {
    pause(10);
    errno = 0;
    EXPECT(handshake_wait_for(1) == EALREADY);
    EXPECT(errno == EALREADY);
    EXPECT(counts[2] == 0);
    counts[3] = 1;
  } else if (me() == 1) {
    pause(40);
    EXPECT(counts[3] == 1);
    handshake_notify();
  }
}

// Each tasklet waits for the one before it and adds its number, as prefix sums do.
static void chain(void) {
  uint32_t sum = 0;
  if (me() != 0) {
    EXPECT(handshake_wait_for(me() - 1) == 0);
    sum = orders[me() - 1];
  }
  orders[me()] = sum + me() + 1;
  if (me() < NR_TASKLETS - 1) handshake_notify();
}

static void atomic_bit(void) {
  for (uint32_t i = 0; i < 10; ++i) {
    ATOMIC_BIT_ACQUIRE(lone);
    bump(&counts[0]);
    ATOMIC_BIT_RELEASE(lone);
    mutex_lock(&ATOMIC_BIT_GET(bits)[me() % 2 + 2]);
    bump(&counts[1 + me() % 2]);
    mutex_unlock(&ATOMIC_BIT_GET(bits)[me() % 2 + 2]);
  }
  barrier_wait(&all);
  EXPECT(counts[0] == 10 * NR_TASKLETS);
  EXPECT(counts[1] == 5 * NR_TASKLETS && counts[2] == 5 * NR_TASKLETS);
}

// Calls `call` twice per tasklet. All tasklets leave the barrier at one time, so all have called
// once before one has called twice.
#define EXPECT_ORDER(count, call)                     \
  do {                                                \
    barrier_wait(&all);                               \
    for (int calls = 0; calls < 2; ++calls) {         \
      call;                                           \
      if (calls == 1) EXPECT((count) == NR_TASKLETS); \
      if (calls == 0) ++(count);                      \
    }                                                 \
  } while (0)

static fsb_allocator_t fixed;

static void heap_order(void) {
  if (me() == 0) {
    buddy_init(4096);
    fixed = fsb_alloc(8, 2 * NR_TASKLETS);
  }
  void *block = 0, *mine[2] = {0, 0};
  EXPECT_ORDER(counts[0], EXPECT(mem_alloc(8) != 0));
  EXPECT_ORDER(counts[1], EXPECT((mine[calls] = fsb_get(fixed)) != 0));
  EXPECT_ORDER(counts[2], fsb_free(fixed, mine[calls]));
  EXPECT_ORDER(counts[3], EXPECT((mine[calls] = buddy_alloc(16)) != 0));
  EXPECT_ORDER(counts[4], EXPECT((block = buddy_realloc(mine[calls], 16)) == mine[calls]));
  EXPECT_ORDER(counts[5], buddy_free(mine[calls]));
}

/// Tasklet 0 is interrupted while it has the allocators' lock. Tasklets 1 and 2 wait for it.
static volatile uint32_t looked, tried, allocated;
extern void __pe_lock_heap(void);
extern volatile uint8_t __pe_heap_lock;
BARRIER_INIT(locked, 3);

static void heap_lock(void) {
  if (me() > 2) return;
  if (me() != 0) {
    barrier_wait(&locked);
    ++tried;
    if (me() == 1)
      EXPECT(mem_alloc(8) != 0);
    else
      EXPECT(fsb_get(fixed) != 0);
    ++allocated;
    return;
  }
  fixed = fsb_alloc(8, 1);
  __pe_lock_heap();
  barrier_wait(&locked);
  while (tried != 2) ++looked;  // this loop stores, so it ends by an interruption
  EXPECT(allocated == 0);
  __pe_heap_lock = 0;
}

// Tasklets wait for two locks in turn, so the one that is released first has its waiters between
// those of the other one.
static void wait_order(void) {
  mutex_id_t own = me() % 2 == 0 ? MUTEX_GET(lock) : MUTEX_GET(held);
  if (me() < 2) mutex_lock(own);
  barrier_wait(&all);
  pause(me() < 2 ? 1000 - 500 * me() : NR_TASKLETS - me());
  if (me() >= 2) {
    mutex_lock(own);
    EXPECT(counts[me() % 2] == (NR_TASKLETS - 1 - me()) / 2);  // the highest number came first
    EXPECT(me() % 2 == 1 || counts[1] == NR_TASKLETS / 2 - 1);
    ++counts[me() % 2];
  }
  mutex_unlock(own);
}

int main(void) {
  if (topic == kBarrier) barriers();
  if (topic == kBarrierSizes)
    for (uint32_t tasklets = 1; tasklets <= NR_TASKLETS; ++tasklets) barrier_of(tasklets);
  if (topic == kMutex) mutexes();
  if (topic == kTrylock) trylock();
  if (topic == kPool) pool_of_mutexes();
  if (topic == kVirtual) virtual_mutexes();
  if (topic == kSemaphore) semaphore();
  if (topic == kProducer) producer();
  if (topic == kWaiterFirst) handshake(5);
  if (topic == kNotifierFirst) handshake(2);
  if (topic == kAlready) already();
  if (topic == kChain) chain();
  if (topic == kAtomicBit) atomic_bit();
  if (topic == kHeapOrder) heap_order();
  if (topic == kHeapLock) heap_lock();
  if (topic == kWaitOrder) wait_order();
  return 0;
}
