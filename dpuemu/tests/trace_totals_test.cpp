// The length of a union of spans is the number of ns in at least one of them.
#include <random>
#include <vector>

#include "harness.h"
#include "trace/totals.h"

using namespace dpuemu;

TEST(Trace_UnionOfSpansCountsEachTimeOnce) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<bool> is_in(1000);
    SpanUnion spans;
    uint64_t length = 0;
    for (int i = 0; i < 100; ++i) {
      const uint64_t begin = random() % 900, end = begin + random() % (round / 2 + 1);
      spans.add(begin, end);
      for (uint64_t time = begin; time < end; ++time) {
        length += !is_in[time];
        is_in[time] = true;
      }
      CHECK_EQ(spans.length(), length);
    }
  }
}

TEST(Trace_UnionOfManySpansKeepsItsLength) {
  SpanUnion spans;
  constexpr uint64_t kSpans = 10 * SpanUnion::kMostSpans;
  for (uint64_t i = 0; i < kSpans; ++i) {
    spans.add(10 * i, 10 * i + 3);
    spans.add(10 * i + 2, 10 * i + 5);
  }
  CHECK_EQ(spans.length(), 5 * kSpans);
  spans.add(10 * kSpans - 100, 10 * kSpans);  // over ten gaps of 5
  CHECK_EQ(spans.length(), 5 * kSpans + 50);
}
