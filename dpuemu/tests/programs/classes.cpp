// C++: classes, templates, virtual functions, and the runtime's headers.
extern "C" {
#include <assert.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <mutex.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"
}

namespace {

struct Shape {
  virtual long area() const = 0;
};

template <class T>
class Rectangle : public Shape {
 public:
  constexpr Rectangle(T width, T height) : width_(width), height_(height) {}
  long area() const override { return long{width_} * height_; }

 private:
  T width_, height_;
};

constexpr Rectangle<int> kRectangle(1 << 20, 1 << 20);
const Shape *const kShapes[] = {&kRectangle};

template <class T, class Act>
void for_each(T *values, uint32_t count, Act act) {
  for (T *value = values; value != values + count; ++value) act(*value);
}

uint32_t next() {
  static uint32_t count = 40;
  return ++count;
}

struct Guard {
  explicit Guard(mutex_id_t mutex) : mutex_(mutex) { mutex_lock(mutex_); }
  ~Guard() { mutex_unlock(mutex_); }
  mutex_id_t mutex_;
};

}  // namespace

BARRIER_INIT(barrier, NR_TASKLETS);
MUTEX_INIT(mutex);

extern "C" {
__host uint64_t sum;
__mram_noinit uint64_t words[16];
__mram uint64_t filled[2] = {7, 8};
}

int main() {
  static_assert(sizeof(long) == 8 && sizeof(void *) == 4 && sizeof(size_t) == 4, "");
  __dma_aligned uint64_t buffer[8];
  if (me() == 0) {
    memset(buffer, 0, sizeof buffer);
    buffer[3] = next();
    mram_write(buffer, words + 8, sizeof buffer);
  }
  barrier_wait(&barrier);
  mram_read(words + 8, buffer, sizeof buffer);
  {
    Guard guard(mutex);
    uint64_t own = 0;
    for_each(buffer, 8, [&own](const uint64_t &value) { own += value; });
    sum += own;
  }
  barrier_wait(&barrier);
  if (me() != 0) return 0;
  EXPECT(sum == 41 * NR_TASKLETS);
  EXPECT(kShapes[0]->area() == 1l << 40);
  EXPECT(next() == 42);
  mram_read(filled, buffer, 16);
  EXPECT(buffer[0] == 7 && buffer[1] == 8);
}
