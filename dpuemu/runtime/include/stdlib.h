/// stdlib.h: the parts of the standard library that DPU programs have.
#ifndef PE_STDLIB_H
#define PE_STDLIB_H

#include <attributes.h>
#include <stddef.h>

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1

/// Stops the PE with a fault.
__NO_RETURN void abort(void);

/// Ends the calling tasklet, as returning `status` from main does.
__NO_RETURN void exit(int status);

/// Returns NULL, because a PE has no environment variables.
static inline char *getenv(const char *name) { return (void)name, (char *)NULL; }

static inline int abs(int x) { return x < 0 ? -x : x; }
static inline long labs(long x) { return x < 0 ? -x : x; }
static inline long long llabs(long long x) { return x < 0 ? -x : x; }

typedef struct {
  int quot;
  int rem;
} div_t;
typedef struct {
  long quot;
  long rem;
} ldiv_t;
typedef struct {
  long long quot;
  long long rem;
} lldiv_t;

static inline div_t div(int numer, int denom) { return (div_t){numer / denom, numer % denom}; }
static inline ldiv_t ldiv(long numer, long denom) { return (ldiv_t){numer / denom, numer % denom}; }
static inline lldiv_t lldiv(long long numer, long long denom) {
  return (lldiv_t){numer / denom, numer % denom};
}

/// Return the decimal number at the start of the string, after white space and one sign. If there
/// are no digits, return 0. If the number is outside the range of the result type, return the
/// nearer bound of the range and set errno to ERANGE.
int atoi(const char *nptr);
long atol(const char *nptr);

#endif  // PE_STDLIB_H
