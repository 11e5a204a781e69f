/// shared_struct.h: a structure with the same layout on the host and the PEs.
#ifndef TEST_SHARED_STRUCT_H
#define TEST_SHARED_STRUCT_H

enum shared_kind { FIRST, SECOND };

struct shared {
  uint32_t small;
  int64_t wide;
  bool flag;
  enum shared_kind kind;
  uint8_t bytes[3];
  double real;
};

#endif  // TEST_SHARED_STRUCT_H
