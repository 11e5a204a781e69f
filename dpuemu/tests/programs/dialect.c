// C that the SDK's compiler accepts and gcc refuses (compiler/dialect.py).
#include <defs.h>
#include <mram.h>
#include <string.h>

#include "expect.h"

typedef struct entry {
  int number;
  struct entry *next;
  char letter;
} entry_t __attribute__((aligned(16)));

struct table {
  entry_t entries[3];
  int count;
};

const int kRows = 4;
static const unsigned kColumns = kRows * 2;

struct table table;
int cells[kRows][kColumns];

// Only arrays have elements without alignment: the type itself keeps it.
typedef struct {
  uint32_t words[3];
} triple_t __attribute__((aligned(8)));
struct holder {
  uint32_t number;
  triple_t triple;
};
triple_t triples[3];
struct holders {
  uint32_t number;
  triple_t triples[2];
};
// A wrong alignment of 16 bytes faults, because gcc then copies with aligned SSE instructions.
typedef struct {
  uint64_t words[3];
} wide_t __attribute__((aligned(16)));
typedef wide_t other_t, *pointer_t;
typedef other_t third_t;
wide_t wides[3];
wide_t __mram_noinit mram_wides[3];
struct {
  int number;
} not_a_type __attribute__((aligned(8)));

static void __attribute__((noinline, noipa)) copy_wide(wide_t *to, const third_t *from) {
  *to = *from;
}
static void __attribute__((noinline, noipa)) put_wide(__mram_ptr other_t *to,
                                                      const pointer_t from) {
  *to = *from;
}
static void __attribute__((noinline, noipa)) get_wide(third_t *restrict to,
                                                      wide_t __mram_ptr *restrict from) {
  *to = *from;
}
static uint64_t __attribute__((noinline, noipa)) sum_wide(wide_t const volatile *begin,
                                                          other_t more[2]) {
  wide_t one = *begin;
  return one.words[0] + one.words[2] + more[1].words[2];
}

__mram uint32_t source[4] = {1, 2, 3, 4};

// The bound of a global array is a global constant with its type, not a constant of a function.
static inline uint32_t halved(uint32_t x) {
  const uint32_t kSize = 2;
  return x / kSize;
}
static const uint32_t kSize = 16;
const uint8_t kNarrow = 260;
uint32_t sized[kSize], narrow[kNarrow];

/// The compiler must not assume that an element is aligned.
static uint32_t __attribute__((noinline)) sum(const triple_t *begin, triple_t more[2]) {
  triple_t one = *begin;
  return one.words[0] + one.words[2] + more[1].words[2];
}

static void align(void) {
  triple_t local;
  EXPECT(sizeof(struct holder) == 24 && __builtin_offsetof(struct holder, triple) == 8);
  EXPECT(__builtin_offsetof(struct holders, triples) == 8 && sizeof triples == 36);
  EXPECT((uint32_t)&local % 8 == 0 && (uint32_t)triples % 8 == 0);
  mram_read(source, &local, 8);
  EXPECT(local.words[0] == 1 && local.words[1] == 2);
  triples[1].words[0] = 5, triples[1].words[2] = 7, triples[2].words[2] = 11;
  EXPECT(sum(&triples[1], triples + 1) == 23);
  EXPECT(sizeof wides == 72 && (uint32_t)wides % 16 == 0 && sizeof(third_t) == 24 &&
         not_a_type.number == 0);
  wides[1] = (wide_t){{3, 4, 5}};
  copy_wide(&wides[2], &wides[1]);
  EXPECT(sum_wide(&wides[1], wides + 1) == 13);
  put_wide((__mram_ptr wide_t *)&mram_wides[1], &wides[2]);
  wides[1].words[2] = 0;
  get_wide(&wides[1], (wide_t __mram_ptr *)&mram_wides[1]);
  EXPECT(wides[1].words[2] == 5);
  EXPECT(sizeof sized == 16 * 4 && sizeof narrow == 4 * 4 && halved(4) == 2);
}
__mram_noinit uint8_t bytes[3000];
__mram_noinit uint8_t others[3000];

static uint8_t pattern(uint32_t i) { return (uint8_t)(i * 7 + i / 256); }

/// memcpy and memset at all alignments of both sides, in all directions, and the bytes around them.
static void copy(void) {
  static __dma_aligned uint8_t in[640], out[640];
  for (uint32_t i = 0; i < sizeof in; ++i) in[i] = pattern(i);
  for (uint32_t a = 0; a < 8; ++a)
    for (uint32_t b = 0; b < 8; ++b) {
      const uint32_t size = 511 + a * 3 - b;
      memset(bytes, 0xEE, sizeof bytes);
      memset(&others[1], 0xDD, 700);
      memcpy(bytes + 8 + a, in + b, size);          // to MRAM
      memcpy(&others[8 + b], &bytes[8 + a], size);  // in MRAM
      memset(out, 0xCC, sizeof out);
      EXPECT(memcpy(out + 8 + a, others + 8 + b, size) == out + 8 + a);  // from MRAM
      uint32_t equal = 0;
      for (uint32_t i = 0; i < size; ++i) equal += out[8 + a + i] == pattern(b + i);
      EXPECT(equal == size && out[7 + a] == 0xCC && out[8 + a + size] == 0xCC);
      EXPECT(bytes[7 + a] == 0xEE && bytes[8 + a + size] == 0xEE && others[7 + b] == 0xDD &&
             others[8 + b + size] == 0xDD);
    }
}

static void move(void) {
  for (uint32_t i = 0; i < 600; ++i) bytes[i] = pattern(i);
  memmove(bytes + 3, bytes, 500);
  uint32_t equal = 0;
  for (uint32_t i = 0; i < 500; ++i) equal += bytes[3 + i] == pattern(i);
  EXPECT(equal == 500);
  memmove(bytes, bytes + 3, 500);
  for (uint32_t i = equal = 0; i < 500; ++i) equal += bytes[i] == pattern(i);
  EXPECT(equal == 500);
}

// Attributes at places where only Clang accepts them.
__mram uint32_t stored[2] = {21, 22};
__host uint32_t counted = 4;
int late[2] __mram;
__attribute__((used, address_space(255), section(".mram"))) uint32_t raw[2] = {31, 32};
typedef uint32_t in_mram __mram_ptr;

static uint32_t __attribute__((noinline, noipa)) last(__dma_aligned uint32_t *const values,
                                                      const uint32_t n __dma_aligned,
                                                      __dma_aligned uint32_t[]);
static uint32_t (*const call)(__dma_aligned uint32_t *, uint32_t, uint32_t *) = last;
static uint32_t last(__dma_aligned uint32_t *const values, const uint32_t n __dma_aligned,
                     __dma_aligned uint32_t more[]) {
  return values[n - 1] + more[0];
}

static uint32_t first(__attribute__((address_space(255))) uint32_t *values) { return values[0]; }

static void attributes(void) {
  extern __mram uint32_t stored[2];
  extern __host uint32_t counted;
  extern __mram_noinit uint32_t defined_later[2];
  __dma_aligned uint32_t words[3] = {1, 2, 3};
  in_mram *pointer = stored;
  EXPECT(stored[1] == 22 && counted == 4 && pointer[0] == 21);
  EXPECT(call(words, 3, words + 1) == 5);
  late[1] = 7;
  defined_later[1] = 8;
  EXPECT(late[1] == 7 && defined_later[1] == 8 && first(raw) == 31 && raw[1] == 32);
}
__mram_noinit uint32_t defined_later[2];

enum { FOUR = kRows, FIVE };
struct bits {
  uint32_t low : kColumns, high : kRows;
};
static uint32_t constants(int x) {
  __builtin_assume(x > 0);
  const int kTwo = kRows - 2;
  static uint32_t table_of_two[kTwo] = {[kTwo - 1] = 6};
  uint32_t initialised[kTwo][kRows] = {{0, 1}, {2}}, other[kTwo + 1] = {3};
  EXPECT(initialised[1][0] + other[0] == 5 && sizeof(initialised) == 32 && sizeof(other) == 12);
  switch (x) {
    case kRows:
      return FIVE;
    case kRows + 1 ... kRows + 2:
      return table_of_two[kTwo - 1];
  }
  return 0;
}

static int calls;
static int next_call(void) { return calls++; }

// Only constants become numbers: neither the contents of strings nor the results of calls.
static void no_constants(void) {
  const char *words[kRows] = {"x[kRows] = {"};
  const int place = next_call();
  EXPECT(words[place][2] == 'k');
  words[place] = "y";
  EXPECT(calls == 1 && words[0][0] == 'y');
}

static void built_ins(void) {
  volatile uint32_t x = 0x80000013, n = 4;
  EXPECT(__builtin_rotateleft32(x, n) == 0x138 && __builtin_rotateright32(x, n) == 0x38000001);
  EXPECT(__builtin_rotateleft8(x, n) == 0x31 && __builtin_rotateright16(x, n) == 0x3001);
  EXPECT(__builtin_rotateleft64(x, n) == 0x800000130 && __builtin_rotateleft32(x, 0) == x);
  EXPECT(__builtin_bitreverse8(x) == 0xC8 && __builtin_bitreverse32(x) == 0xC8000001);
  EXPECT(__builtin_bitreverse64(n) == 1ull << 61);
}

static void compare(void) {
  uint8_t *wram = (uint8_t *)(uint32_t)(bytes + 8);  // the same value in the other memory
  const int n = 4;
  EXPECT(bytes + 8 == wram && !(bytes + n != wram - 4));
  EXPECT(1 && bytes <= wram && wram < (bytes + 9) && (n, wram) >= bytes + 7);
  EXPECT((bytes > wram ? 1 : 2) == 2);
}

int main(void) {
  if (me() != 0) return 0;
  EXPECT(sizeof table.entries == 3 * sizeof(entry_t) && &table.entries[2] > table.entries);
  table.entries[2].letter = 'x';
  EXPECT(table.entries[2].letter == 'x' && table.count == 0);
  EXPECT(sizeof cells == 4 * 8 * sizeof(int));
  cells[3][7] = 5;
  EXPECT(cells[3][7] == 5);
  align();
  copy();
  move();
  compare();
  attributes();
  built_ins();
  no_constants();
  struct bits bits = {255, 15};
  EXPECT(constants(4) == 5 && constants(6) == 6 && bits.low + bits.high == 270);
  return 0;
}
