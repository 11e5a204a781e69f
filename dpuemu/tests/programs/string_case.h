/// string_case.h: one call of a function of string.h, made by the PE program and the host on copies
/// of the same bytes.
#ifndef TEST_STRING_CASE_H
#define TEST_STRING_CASE_H

#define CASE_BYTES 128
#define CASES 64
#define CASE_FUNCTIONS 24

/// Two places in the bytes (each followed by a zero somewhere), a number and a character.
struct string_case {
  uint32_t function, a, b, n;
};

/// The result of a call (an offset, a sign, a length; 0xFFFFFFFF for NULL) and a checksum of all
/// bytes after the call.
struct string_result {
  uint32_t value, checksum;
};

static inline uint32_t case_checksum(const uint8_t *bytes) {
  uint32_t sum = 2166136261u;
  for (uint32_t i = 0; i < CASE_BYTES; ++i) sum = (sum ^ bytes[i]) * 16777619u;
  return sum;
}

static inline uint32_t case_sign(int value) { return value < 0 ? 1u : value > 0 ? 2u : 0u; }
static inline uint32_t case_offset(const uint8_t *bytes, const void *pointer) {
  return pointer == NULL ? 0xFFFFFFFFu : (uint32_t)((const uint8_t *)pointer - bytes);
}

/// Requires a and b below 32, n at most 24, strings shorter than 32 in the lower half, and an upper
/// half free for results.
static inline uint32_t call_case(uint8_t *bytes, const struct string_case *c) {
  char *a = (char *)bytes + c->a % 32, *b = (char *)bytes + c->b % 32, *to = (char *)bytes + 64;
  size_t n = c->n % 32;
  int character = (char)('a' + c->n % 4);
  switch (c->function) {
    case 0:
      return (uint32_t)strlen(a);
    case 1:
      return (uint32_t)strnlen(a, n);
    case 2:
      return case_sign(memcmp(a, b, n));
    case 3:
      return case_sign(strcmp(a, b));
    case 4:
      return case_sign(strncmp(a, b, n));
    case 5:
      return case_offset(bytes, memset(to, (int)c->a * 9, n));
    case 6:
      return case_offset(bytes, memcpy(to, a, n));
    case 7:
      return case_offset(bytes, memmove(a, b, n));
    case 8:
      return case_offset(bytes, memchr(a, character, n));
    case 9:
      return case_offset(bytes, strchr(a, character));
    case 10:
      return case_offset(bytes, strrchr(a, character));
    case 11:
      return case_offset(bytes, strcat(strcpy(to, a), b));
    case 12:
      return case_offset(bytes, strncat(strcpy(to, a), b, n));
    case 13:
      return case_offset(bytes, strcpy(to, a));
    case 14:
      return case_offset(bytes, strncpy(to, a, n));
    case 15:
      return case_offset(bytes, stpcpy(to, a));
    case 16:
      return case_offset(bytes, stpncpy(to, a, n));
    case 17:
      return (uint32_t)strspn(a, b);
    case 18:
      return (uint32_t)strcspn(a, b);
    case 19:
      return case_offset(bytes, strpbrk(a, b));
    case 20: {
      bytes[c->b + n % 3] = 0;  // so that some needles are short and found
      return case_offset(bytes, strstr(a, b));
    }
    case 21: {
      char *place = NULL;
      uint32_t value = case_offset(bytes, strtok_r(a, "ab", &place));
      for (int i = 0; i < 3; ++i)
        value = value * 131 + case_offset(bytes, strtok_r(NULL, "ab", &place));
      return value;
    }
    case 22: {
      char *place = a;
      uint32_t value = 0;
      for (int i = 0; i < 4; ++i) value = value * 131 + case_offset(bytes, strsep(&place, "bc"));
      return value * 131 + case_offset(bytes, place);
    }
    default:
      return (uint32_t)strlen(strcpy(to, a)) + case_sign(strcoll(a, b)) * 3;
  }
}

#endif  // TEST_STRING_CASE_H
