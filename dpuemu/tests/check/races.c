// Races between tasklets on WRAM.
#include "case.h"

BARRIER_INIT(all, NR_TASKLETS)
MUTEX_INIT(first);
MUTEX_INIT(second);

uint32_t counter;
CASE(race, counter_without_mutex) { counter += me(); }

uint32_t table[64];
CASE(race, no_barrier_after_initialisation) {
  if (me() == 0)
    for (int i = 0; i < 64; ++i) table[i] = i;
  sink = table[me()];
}

uint32_t sum;
CASE(race, one_variable_two_mutexes) {
  mutex_id_t mutex = me() % 2 ? first : second;
  mutex_lock(mutex);
  sum += me();
  mutex_unlock(mutex);
}

uint32_t maximum;
CASE(race, reads_before_the_lock) {
  if (me() > maximum) {
    mutex_lock(first);
    maximum = me();
    mutex_unlock(first);
  }
}

uint32_t ready, payload;
CASE(race, plain_flag) {
  if (me() == 0) {
    payload = 42;
    ready = 1;
  } else if (ready) {
    sink = payload;
  }
}

uint32_t result;
CASE(race, barrier_before_the_write) {
  barrier_wait(&all);
  if (me() == 0) result = 7;
  sink = result;
}

uint32_t message;
CASE(race, notifies_before_the_write) {
  if (me() == 0) {
    handshake_notify();
    message = 1;
  } else if (me() == 1) {
    handshake_wait_for(0);
    sink = message;
  }
}

SEMAPHORE_INIT(items, 0)
uint32_t item;
CASE(race, gives_before_the_write) {
  if (me() == 0) {
    sem_give(&items);
    item = 3;
  } else if (me() == 1) {
    sem_take(&items);
    sink = item;
  }
}

uint32_t partial[NR_TASKLETS];
CASE(race, tree_without_barriers) {
  partial[me()] = me();
  barrier_wait(&all);
  for (uint32_t step = 1; step < NR_TASKLETS; step *= 2)
    if (me() % (2 * step) == 0) partial[me()] += partial[me() + step];
}

uint8_t flags;
CASE(race, bits_of_one_byte) { flags |= 1 << me(); }

struct {
  unsigned a : 4, b : 4;
} fields;
CASE(race, neighbouring_bit_fields) {
  if (me() == 0) fields.a = 1;
  if (me() == 1) fields.b = 2;
}

__dma_aligned uint8_t shared[64];
CASE(race, one_buffer_for_all_tasklets) {
  mram_read((__mram_ptr void *)(INPUT + 64 * me()), shared, 64);
  sink = shared[me()];
}

volatile uint32_t volatile_counter;
CASE(race, volatile_increment) { ++volatile_counter; }

VMUTEX_INIT(bits, 16, 1)
uint32_t guarded;
CASE(race, another_bit_of_a_vmutex) {
  vmutex_lock(&bits, me());
  guarded += 1;
  vmutex_unlock(&bits, me());
}

uint8_t text[32];
CASE(race, copies_to_one_place) {
  uint8_t own[32];
  for (int i = 0; i < 32; ++i) own[i] = me();
  memcpy(text, own, sizeof text);
}

BARRIER_INIT(low, NR_TASKLETS / 2)
BARRIER_INIT(high, NR_TASKLETS / 2)
uint32_t cells[NR_TASKLETS];
CASE(race, barriers_of_two_halves) {
  cells[me()] = me();
  barrier_wait(me() < NR_TASKLETS / 2 ? &low : &high);
  sink = cells[NR_TASKLETS - 1 - me()];
}

uint32_t grid[NR_TASKLETS * 4];
CASE(race, neighbour_of_a_stencil) {
  uint32_t *own = grid + 4 * me();
  for (int i = 0; i < 4; ++i) own[i] = i;
  barrier_wait(&all);
  uint32_t right = me() + 1 < NR_TASKLETS ? own[4] : 0;
  own[0] = right;
}

uint32_t *published;
CASE(race, pointer_without_order) {
  if (me() == 0) {
    uint32_t *block = mem_alloc(8);
    *block = 5;
    published = block;
  } else if (published) {
    sink = *published;
  }
}

uint32_t queue[8], length;
CASE(race, unlocks_too_early) {
  mutex_lock(first);
  uint32_t place = length;
  mutex_unlock(first);
  queue[place] = me();
  mutex_lock(first);
  ++length;
  mutex_unlock(first);
}

CASE(race, heap_reset_by_one_tasklet) {
  delay(0);
  if (me() == 0) mem_reset();
  uint32_t *block = mem_alloc(16);
  block[0] = me();
}

uint32_t spun;
CASE(race, trylock_ignored) {
  mutex_trylock(first);
  spun += 1;
  barrier_wait(&all);
  if (me() == 0) mutex_unlock(first);
}

struct pair {
  uint32_t a, b;
} whole;
CASE(race, assignment_of_a_structure) {
  struct pair own = {me(), me()};
  whole = own;
}

uint8_t buffer_of_one[8] __dma_aligned;
CASE(race, writes_while_another_sends) {
  if (me() == 0) {
    memset(buffer_of_one, 1, 8);
    mram_write(buffer_of_one, (__mram_ptr void *)UNWRITTEN, 8);
  } else if (me() == 1) {
    buffer_of_one[3] = 2;
  }
}

ATOMIC_BIT_INIT(bit_a);
ATOMIC_BIT_INIT(bit_b);
uint32_t under_bits;
CASE(race, two_atomic_bits) {
  if (me() % 2) {
    ATOMIC_BIT_ACQUIRE(bit_a);
    under_bits += 1;
    ATOMIC_BIT_RELEASE(bit_a);
  } else {
    ATOMIC_BIT_ACQUIRE(bit_b);
    under_bits += 1;
    ATOMIC_BIT_RELEASE(bit_b);
  }
}

uint32_t before_the_pool;
fsb_allocator_t pool_of_blocks;
CASE(race, order_of_an_allocator) {
  if (me() == 0) {
    mem_reset();
    pool_of_blocks = fsb_alloc(16, 8);
  }
  barrier_wait(&all);
  delay(1);
  if (me() == 0) before_the_pool = 1;  // before
  if (me() < 2) fsb_get(pool_of_blocks);
  if (me() == 1) sink = before_the_pool;  // now
}
