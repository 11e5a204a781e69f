#include <atomic_bit.h>

// The linker adds this lock to programs that name it: `ATOMIC_BIT_EXTERN(__heap_pointer);`.
ATOMIC_BIT_INIT(__heap_pointer);
