// The compiler must not turn these functions into calls of themselves: for example, it must not
// recognise a loop, nor replace a stpcpy with unused result by strcpy. Therefore similar functions
// share static functions whose names the compiler does not know.
#pragma GCC optimize("no-tree-loop-distribute-patterns")

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "check.h"

// The DPU also copies and compares such words if the addresses are aligned.
typedef uint64_t __attribute__((may_alias)) word_t;

static int is_aligned(const void *a, const void *b) {
  return (((uintptr_t)a | (uintptr_t)b) & (sizeof(word_t) - 1)) == 0;
}

size_t strlen(const char *string) {
  const char *end = string;
  while (*end != '\0') ++end;
  return (size_t)(end - string);
}

size_t strnlen(const char *string, size_t max_len) {
  size_t length = 0;
  while (length < max_len && string[length] != '\0') ++length;
  return length;
}

int memcmp(const void *area1, const void *area2, size_t size) {
  const uint8_t *a = area1;
  const uint8_t *b = area2;
  for (size_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) return a[i] - b[i];
  }
  return 0;
}

static int compare(const char *string1, const char *string2, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    uint8_t a = (uint8_t)string1[i];
    uint8_t b = (uint8_t)string2[i];
    if (a != b || a == '\0') return a - b;
  }
  return 0;
}

int strcmp(const char *string1, const char *string2) { return compare(string1, string2, SIZE_MAX); }

int strncmp(const char *string1, const char *string2, size_t size) {
  return compare(string1, string2, size);
}

void *memset(void *area, int value, size_t size) {
  uint8_t *to = area;
  uint8_t *end = to + size;
  if (is_aligned(area, area)) {
    word_t word = 0x0101010101010101 * (uint64_t)(uint8_t)value;
    for (; size >= sizeof word; size -= sizeof word, to += sizeof word) *(word_t *)to = word;
  }
  while (to != end) *to++ = (uint8_t)value;
  return area;
}

// Copies in ascending order, so the destination may overlap the start of the source: aligned
// addresses differ by at least one word.
__PE_REPORTS_COPIES static void copy_up(uint8_t *to, const uint8_t *from, size_t size) {
  uint8_t *end = to + size;
  if (is_aligned(to, from)) {
    for (; size >= sizeof(word_t);
         size -= sizeof(word_t), to += sizeof(word_t), from += sizeof(word_t)) {
      *(word_t *)to = *(const word_t *)from;
    }
  }
  while (to != end) *to++ = *from++;
}

__PE_REPORTS_COPIES void *memcpy(void *destination, const void *source, size_t size) {
  __pe_check_copy(destination, source, size);
  copy_up(destination, source, size);
  return destination;
}

__PE_REPORTS_COPIES void *memmove(void *destination, const void *source, size_t size) {
  __pe_check_copy(destination, source, size);
  uint8_t *to = destination;
  const uint8_t *from = source;
  if ((uintptr_t)to - (uintptr_t)from >= size) {
    copy_up(to, from, size);
  } else {
    while (size-- > 0) to[size] = from[size];
  }
  return destination;
}

void *memchr(const void *area, int character, size_t size) {
  const uint8_t *bytes = area;
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] == (uint8_t)character) return (void *)(uintptr_t)(bytes + i);
  }
  return NULL;
}

char *strchr(const char *string, int character) {
  for (;; ++string) {
    if (*string == (char)character) return (char *)(uintptr_t)string;
    if (*string == '\0') return NULL;
  }
}

char *strrchr(const char *string, int character) {
  const char *last = NULL;
  do {
    if (*string == (char)character) last = string;
  } while (*string++ != '\0');
  return (char *)(uintptr_t)last;
}

// copy and copy_padded return the end: the address of the zero, or the address where the zero would
// be.
static char *copy(char *destination, const char *source) {
  while ((*destination = *source++) != '\0') ++destination;
  return destination;
}

static char *copy_padded(char *destination, const char *source, size_t size) {
  size_t length = strnlen(source, size);
  memcpy(destination, source, length);
  memset(destination + length, '\0', size - length);
  return destination + length;
}

char *strcat(char *destination, const char *source) {
  copy(destination + strlen(destination), source);
  return destination;
}

char *strncat(char *destination, const char *source, size_t size) {
  char *end = destination + strlen(destination);
  size_t length = strnlen(source, size);
  memcpy(end, source, length);
  end[length] = '\0';
  return destination;
}

char *strcpy(char *destination, const char *source) {
  copy(destination, source);
  return destination;
}

char *strncpy(char *destination, const char *source, size_t size) {
  copy_padded(destination, source, size);
  return destination;
}

char *stpcpy(char *destination, const char *source) { return copy(destination, source); }

char *stpncpy(char *destination, const char *source, size_t size) {
  return copy_padded(destination, source, size);
}

char *strlwr(char *string) {
  for (char *c = string; *c != '\0'; ++c) *c = (char)tolower(*c);
  return string;
}

char *strupr(char *string) {
  for (char *c = string; *c != '\0'; ++c) *c = (char)toupper(*c);
  return string;
}

char *strrev(char *string) {
  for (size_t left = 0, right = strlen(string); left + 1 < right; ++left) {
    char c = string[--right];
    string[right] = string[left];
    string[left] = c;
  }
  return string;
}

// Returns the length of the longest prefix whose characters are all in the set, or all not in the
// set.
static size_t span(const char *string, const char *set, int is_member) {
  size_t length = 0;
  while (string[length] != '\0' && (strchr(set, string[length]) != NULL) == is_member) ++length;
  return length;
}

size_t strspn(const char *string, const char *accept) { return span(string, accept, 1); }

size_t strcspn(const char *string, const char *reject) { return span(string, reject, 0); }

char *strpbrk(const char *string, const char *accept) {
  const char *found = string + span(string, accept, 0);
  return *found == '\0' ? NULL : (char *)(uintptr_t)found;
}

char *strstr(const char *haystack, const char *needle) {
  size_t length = strlen(needle);
  for (;; ++haystack) {
    if (compare(haystack, needle, length) == 0) return (char *)(uintptr_t)haystack;
    if (*haystack == '\0') return NULL;
  }
}

char *strtok_r(char *str, const char *delim, char **saveptr) {
  char *token = str != NULL ? str : *saveptr;
  if (token == NULL) return NULL;
  token += strspn(token, delim);
  *saveptr = token;
  return *token == '\0' ? NULL : strsep(saveptr, delim);
}

char *strsep(char **stringp, const char *delim) {
  char *token = *stringp;
  if (token == NULL) return NULL;
  char *end = token + strcspn(token, delim);
  *stringp = *end == '\0' ? NULL : end + 1;
  *end = '\0';
  return token;
}
