// A program with one mutex. Tests change the number of mutexes in its file.
#include <mutex.h>
#include <stdint.h>

MUTEX_INIT(only);
__host uint32_t sum;

int main(void) {
  mutex_lock(only);
  ++sum;
  mutex_unlock(only);
  return 0;
}
