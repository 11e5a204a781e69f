/* LD_PRELOAD library that makes one call of a function fail, or all calls from this one on.
 *
 * FAULT_CALL names the function (a row of KINDS), FAULT_N the number of the call after faults_arm,
 * FAULT_ON is `once` or `on`. With FAULT_N=0 nothing fails, and at exit the library writes the
 * number of calls of each function to stderr, one line each. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KINDS(X) X(malloc) X(calloc) X(realloc) X(aligned_alloc) X(mmap) X(pthread_create)
#define ROW(name) k_##name,
enum { KINDS(ROW) kKinds };
#undef ROW
#define ROW(name) #name,
static const char *const kNames[] = {KINDS(ROW)};
#undef ROW

static atomic_long calls[kKinds];
static int kind = -1, goes_on, is_armed;
static long fault_number;
static int (*real_pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);

static void print_calls(void) {
  for (int i = 0; i < kKinds; ++i)
    fprintf(stderr, "calls %s %ld\n", kNames[i], atomic_load(&calls[i]));
}

/* The host program calls this function at the start of main. */
void faults_arm(void) {
  const char *name = getenv("FAULT_CALL"), *number = getenv("FAULT_N"), *on = getenv("FAULT_ON");
  for (int i = 0; i < kKinds; ++i)
    if (name != NULL && strcmp(name, kNames[i]) == 0) kind = i;
  fault_number = number != NULL ? atol(number) : 0;
  goes_on = on != NULL && strcmp(on, "on") == 0;
  *(void **)&real_pthread_create = dlsym(RTLD_NEXT, "pthread_create");
  if (fault_number == 0) atexit(print_calls);
  is_armed = 1;
}

/* Counts a call; must it fail? */
static int fails(int of) {
  if (!is_armed) return 0;
  const long number = atomic_fetch_add(&calls[of], 1) + 1;
  return of == kind && fault_number != 0 &&
         (goes_on ? number >= fault_number : number == fault_number);
}

static void *out_of_memory(void) {
  errno = ENOMEM;
  return NULL;
}

void *malloc(size_t bytes) { return fails(k_malloc) ? out_of_memory() : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) {
  return fails(k_calloc) ? out_of_memory() : __libc_calloc(count, bytes);
}
void *realloc(void *old, size_t bytes) {
  return fails(k_realloc) ? out_of_memory() : __libc_realloc(old, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  return fails(k_aligned_alloc) ? out_of_memory() : __libc_memalign(alignment, bytes);
}
int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  *memory = fails(k_aligned_alloc) ? NULL : __libc_memalign(alignment, bytes);
  return *memory == NULL ? ENOMEM : 0;
}
void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (!fails(k_mmap))
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument) {
  if (real_pthread_create == NULL)
    *(void **)&real_pthread_create = dlsym(RTLD_NEXT, "pthread_create");
  return fails(k_pthread_create) ? EAGAIN
                                 : real_pthread_create(thread, attributes, start, argument);
}
