/// expect.h: checks inside PE programs. The host reads failed_line (0: no check failed) and checks
/// (their number).
#ifndef TEST_EXPECT_H
#define TEST_EXPECT_H

#include <attributes.h>
#include <defs.h>
#include <stdint.h>

__host uint32_t topic;
__host uint32_t failed_line;
__host uint32_t checks;

#define EXPECT(condition)                                         \
  do {                                                            \
    if (!(condition) && failed_line == 0) failed_line = __LINE__; \
    ++checks;                                                     \
  } while (0)

#endif  // TEST_EXPECT_H
