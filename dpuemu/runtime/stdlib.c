#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

// Accumulates the digits as a negative number, because a signed type has one more negative value
// than positive values.
static long long parse(const char *text, long long lowest, long long highest) {
  while (isspace(*text)) ++text;
  int is_negative = *text == '-';
  if (*text == '-' || *text == '+') ++text;
  long long bound = is_negative ? lowest : -highest;
  long long value = 0;
  for (; isdigit(*text); ++text) {
    int digit = *text - '0';
    if (value < (bound + digit) / 10) {
      errno = ERANGE;
      value = bound;
      break;
    }
    value = 10 * value - digit;
  }
  return is_negative ? value : -value;
}

int atoi(const char *nptr) { return (int)parse(nptr, INT_MIN, INT_MAX); }

long atol(const char *nptr) { return (long)parse(nptr, LONG_MIN, LONG_MAX); }
