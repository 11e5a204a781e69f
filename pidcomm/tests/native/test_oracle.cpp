// The oracle, which other tests compare results with, against literals worked out by hand. One
// file, because all tests call one function.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../verify/fill.h"
#include "../../verify/oracle.h"
#include "harness.h"

namespace {

using verify::Fill;
using verify::Problem;
using Bytes = std::vector<std::uint8_t>;
using Axes = std::vector<std::uint32_t>;

template <class T>
Bytes bytes_of(const std::vector<T> &values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
std::vector<T> values_of(const Bytes &bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <class T>
std::string text(const std::vector<T> &values) {
  std::ostringstream out;
  out.precision(17);
  for (const T &value : values) out << +value << ' ';
  return out.str();
}

template <class T>
std::vector<T> result(const Problem &problem, const std::vector<T> &before) {
  return values_of<T>(verify::expected(problem, bytes_of(before)));
}

/// The reduction of `values`, one per PE, over all PEs of a hypercube, as the host row of `reduce`.
template <class T>
T reduced(int type, int op, const std::vector<T> &values) {
  const Problem problem{
      verify::kREDUCE, {static_cast<std::uint32_t>(values.size())}, "1", sizeof(T), type, op};
  return result(problem, values).at(0);
}

bool is_rejected(const Problem &problem, std::size_t bytes) {
  try {
    verify::expected(problem, Bytes(bytes));
  } catch (const std::invalid_argument &) {
    return true;
  }
  return false;
}

// ---- hypercube

TEST(Coordinates_FirstAxisVariesFastest) {
  CHECK_EQ(text(verify::coordinates({2, 3, 4}, 0)), "0 0 0 ");
  CHECK_EQ(text(verify::coordinates({2, 3, 4}, 1)), "1 0 0 ");
  CHECK_EQ(text(verify::coordinates({2, 3, 4}, 2)), "0 1 0 ");
  CHECK_EQ(text(verify::coordinates({2, 3, 4}, 23)), "1 2 3 ");
}

TEST(Groups_FixTheUnselectedCoordinatesAndCountTheSelectedOnes) {
  struct Row {
    Axes axis_len;
    std::string mask, group, member;
  };
  const Row rows[] = {
      {{2, 3}, "10", "0 0 1 1 2 2 ", "0 1 0 1 0 1 "},
      {{2, 3}, "01", "0 1 0 1 0 1 ", "0 0 1 1 2 2 "},
      {{2, 3}, "11", "0 0 0 0 0 0 ", "0 1 2 3 4 5 "},
      {{2, 3}, "00", "0 1 2 3 4 5 ", "0 0 0 0 0 0 "},
      {{2, 2, 2}, "101", "0 0 1 1 0 0 1 1 ", "0 1 0 1 2 3 2 3 "},
      {{2, 2, 2}, "010", "0 1 0 1 2 3 2 3 ", "0 0 1 1 0 0 1 1 "},
      {{1, 3, 1}, "101", "0 1 2 ", "0 0 0 "},
  };
  for (const Row &row : rows) {
    const verify::Groups groups = verify::groups_of(row.axis_len, row.mask);
    CHECK_EQ(text(groups.group), row.group);
    CHECK_EQ(text(groups.member), row.member);
    CHECK_EQ(groups.count * groups.group_pes, groups.pes);
    for (std::uint32_t pe = 0; pe < groups.pes; ++pe)
      CHECK_EQ(groups.members(groups.group[pe])[groups.member[pe]], pe);
  }
}

// ---- the eight collectives on 2 x 3
// Element j of PE p is 10 p + j, element j of host row g is 100 g + j.

TEST(AllToAll_MovesBlockQOfMemberPToBlockPOfMemberQ) {
  const std::vector<int> before = {0,  1,  2,  10, 11, 12, 20, 21, 22,
                                   30, 31, 32, 40, 41, 42, 50, 51, 52};
  CHECK_EQ(text(result<int>({verify::kALLTOALL, {2, 3}, "01", 12, verify::kINT32}, before)),
           "0 20 40 10 30 50 1 21 41 11 31 51 2 22 42 12 32 52 ");
  CHECK_EQ(text(result<int>({verify::kALLTOALL, {2, 3}, "10", 8, verify::kINT32},
                            {0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51})),
           "0 10 1 11 20 30 21 31 40 50 41 51 ");
}

TEST(AllToAll_MovesBlocksOfSeveralElementsWhole) {
  CHECK_EQ(text(result<int>({verify::kALLTOALL, {2}, "1", 16, verify::kINT32},
                            {0, 1, 2, 3, 10, 11, 12, 13})),
           "0 1 10 11 2 3 12 13 ");
}

TEST(ReduceScatter_GivesMemberQTheReductionOfBlockQ) {
  CHECK_EQ(
      text(result<int>({verify::kREDUCE_SCATTER, {2, 3}, "01", 12, verify::kINT32, verify::kSUM},
                       {0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32, 40, 41, 42, 50, 51, 52})),
      "60 90 63 93 66 96 ");
  CHECK_EQ(text(result<int>({verify::kREDUCE_SCATTER, {2}, "1", 16, verify::kINT32, verify::kMAX},
                            {0, 1, 2, 3, 10, -11, 12, -13})),
           "10 1 12 3 ");
}

TEST(AllReduce_GivesEveryMemberTheReduction) {
  CHECK_EQ(text(result<int>({verify::kALLREDUCE, {2, 3}, "10", 8, verify::kINT32, verify::kSUM},
                            {0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51})),
           "10 12 10 12 50 52 50 52 90 92 90 92 ");
}

TEST(AllGather_GivesEveryMemberAllContributionsInMemberOrder) {
  CHECK_EQ(text(result<int>({verify::kALLGATHER, {2, 3}, "01", 12, verify::kINT32},
                            {0, 10, 20, 30, 40, 50})),
           "0 20 40 10 30 50 0 20 40 10 30 50 0 20 40 10 30 50 ");
}

TEST(Scans_CombineTheMembersUpToQ) {
  const std::vector<int> before = {0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51};
  CHECK_EQ(
      text(result<int>({verify::kSCAN, {2, 3}, "01", 8, verify::kINT32, verify::kSUM}, before)),
      "0 1 10 11 20 22 40 42 60 63 90 93 ");
  CHECK_EQ(
      text(result<int>({verify::kEXSCAN, {2, 3}, "01", 8, verify::kINT32, verify::kMAX}, before)),
      "-2147483648 -2147483648 -2147483648 -2147483648 0 1 10 11 20 21 30 31 ");
  const float large = 1 << 24;  // the sum with 1 rounds to itself
  CHECK_EQ(text(result<float>({verify::kSCAN, {4}, "1", 4, verify::kFLOAT32, verify::kSUM},
                              {large, 1, 1, -large})),
           "16777216 16777216 16777216 0 ");
  CHECK_EQ(
      text(result<float>({verify::kEXSCAN, {2}, "1", 4, verify::kFLOAT32, verify::kMIN}, {3, 4})),
      "inf 3 ");
}

template <class T>
std::vector<T> folded(int collective, int type, verify::Fold fold, const std::vector<T> &before) {
  const auto pes = static_cast<std::uint32_t>(before.size());
  return result<T>({collective,
                    {pes},
                    "1",
                    sizeof(T),
                    type,
                    verify::kSUM,
                    std::make_shared<const verify::Fold>(std::move(fold))},
                   before);
}

TEST(Averages_RoundTheExactMeanToEven) {
  const auto mean = [](const std::vector<int> &values) {
    return text(folded(verify::kREDUCE, verify::kINT32, verify::average(verify::kINT32), values));
  };
  CHECK_EQ(mean({1, 2}), "2 ");
  CHECK_EQ(mean({2, 3}), "2 ");
  CHECK_EQ(mean({-1, -2}), "-2 ");
  CHECK_EQ(mean({-1, 0}), "0 ");
  CHECK_EQ(mean({1, 1, 2}), "1 ");
  CHECK_EQ(mean({INT32_MAX, INT32_MAX, INT32_MAX}), "2147483647 ");
  CHECK_EQ(
      text(folded<std::uint64_t>(verify::kREDUCE, verify::kUINT64, verify::average(verify::kUINT64),
                                 {UINT64_MAX, UINT64_MAX, UINT64_MAX - 3})),
      "18446744073709551614 ");
  CHECK_EQ(
      text(folded<int>(verify::kSCAN, verify::kINT32, verify::average(verify::kINT32), {4, 1, 1})),
      "4 2 2 ");  // 4, 2.5, 2
  CHECK_EQ(text(folded<float>(verify::kREDUCE, verify::kFLOAT32, verify::average(verify::kFLOAT32),
                              {1, 2, 4, 3})),
           "2.5 ");
  // 256 + 1 rounds to 256 in bfloat16, but float32 has the sum.
  const std::uint16_t k256 = 0x4380, k1 = 0x3F80, k86 = 0x42AC;
  CHECK_EQ(text(folded<std::uint16_t>(verify::kREDUCE, verify::kBFLOAT16,
                                      verify::average(verify::kBFLOAT16), {k256, k1, k1})),
           text(std::vector<std::uint16_t>{k86}));
  CHECK_EQ(text(folded<double>(verify::kSCAN, verify::kFLOAT64,
                               verify::scaled_sum(verify::kFLOAT64, 0.5), {1, 2, 4})),
           "0.5 1.5 3.5 ");
}

TEST(Places_PreferNanThenTheSmallestIndex) {
  struct Place {
    float value;
    std::uint32_t index;
  };
  const auto best = [](bool is_max, const std::vector<Place> &places) {
    const Place place =
        folded(verify::kREDUCE, verify::kFLOAT32, verify::place(verify::kFLOAT32, is_max), places)
            .at(0);
    return std::to_string(place.value) + " " + std::to_string(place.index);
  };
  CHECK_EQ(best(false, {{2, 0}, {1, 7}, {1, 5}, {3, 1}}), "1.000000 5");
  CHECK_EQ(best(true, {{2, 0}, {3, 7}, {1, 5}, {3, 1}}), "3.000000 1");
  CHECK_EQ(best(true, {{-0.0f, 4}, {0, 6}}), "-0.000000 4");
  CHECK(best(false, {{2, 0}, {NAN, 9}, {NAN, 8}}).find("nan 8") != std::string::npos);
  const Place first = folded(verify::kEXSCAN, verify::kFLOAT32,
                             verify::place(verify::kFLOAT32, false), std::vector<Place>{{2, 0}})
                          .at(0);
  CHECK(std::isinf(first.value) && first.index == ~0u);
}

TEST(Messages_MoveRunsAndFill) {
  const std::vector<std::uint64_t> before = {0, 1, 2, 10, 11, 12};  // 2 PEs with 3 words
  std::vector<std::uint8_t> after = bytes_of(std::vector<std::uint64_t>(6, 99));
  const std::vector<verify::Message> messages = {
      {1, 0, 8, 0, 8, 2, 8, 16},          // words 1 and 2 of PE 1 to words 0 and 2 of PE 0
      {0, 1, 0, 8, 16, 0, 0, 0},          // words 0 and 1
      {0xFFFFFFFF, 1, 5, 0, 8, 1, 1, 0},  // the word 2^32 + 5
  };
  verify::move(messages, 24, bytes_of(before), after);
  CHECK_EQ(text(values_of<std::uint64_t>(after)), "11 99 12 4294967301 0 1 ");
  bool is_refused = false;
  try {
    verify::move(std::vector<verify::Message>{{0, 1, 0, 16, 16, 1, 0, 0}}, 24, bytes_of(before),
                 after);
  } catch (const std::invalid_argument &) {
    is_refused = true;
  }
  CHECK(is_refused);
}

TEST(Scatter_GivesMemberQPartQOfItsGroupsRow) {
  CHECK_EQ(text(result<int>({verify::kSCATTER, {2, 3}, "01", 4, verify::kINT32},
                            {0, 1, 2, 100, 101, 102})),
           "0 100 1 101 2 102 ");
  CHECK_EQ(text(result<int>({verify::kSCATTER, {2, 3}, "10", 8, verify::kINT32},
                            {0, 1, 2, 3, 100, 101, 102, 103, 200, 201, 202, 203})),
           "0 1 2 3 100 101 102 103 200 201 202 203 ");
}

TEST(Gather_IsTheInverseOfScatter) {
  CHECK_EQ(text(result<int>({verify::kGATHER, {2, 3}, "01", 4, verify::kINT32},
                            {0, 100, 1, 101, 2, 102})),
           "0 1 2 100 101 102 ");
  for (const char *mask : {"000", "100", "010", "001", "110", "101", "011", "111"}) {
    const Axes axis_len = {2, 3, 2};
    Bytes rows(12 * 24);
    verify::fill_distinct(1, 24, rows);
    const Bytes scattered =
        verify::expected({verify::kSCATTER, axis_len, mask, 24, verify::kINT64}, rows);
    CHECK(verify::expected({verify::kGATHER, axis_len, mask, 24, verify::kINT64}, scattered) ==
          rows);
  }
}

TEST(Reduce_GivesOneHostRowPerGroup) {
  CHECK_EQ(text(result<int>({verify::kREDUCE, {2, 3}, "01", 8, verify::kINT32, verify::kMIN},
                            {0, 1, 10, 11, -20, 21, 30, 31, 40, -41, 50, 51})),
           "-20 -41 10 11 ");
}

TEST(Broadcast_GivesEveryMemberItsGroupsRow) {
  CHECK_EQ(
      text(result<int>({verify::kBROADCAST, {2, 3}, "01", 8, verify::kINT32}, {0, 1, 100, 101})),
      "0 1 100 101 0 1 100 101 0 1 100 101 ");
}

TEST(MaskThatSelectsNothing_MeansOneRowPerPeAndACopy) {
  const std::vector<int> rows = {0, 1, 10, 11, 20, 21};
  for (int collective = verify::kALLTOALL; collective <= verify::kBROADCAST; ++collective)
    CHECK_EQ(text(result<int>({collective, {3, 1}, "00", 8, verify::kINT32, verify::kPROD}, rows)),
             "0 1 10 11 20 21 ");
}

TEST(Rows_HaveTheSizesOfTheDefinitionTable) {
  struct Row {
    int collective;
    std::size_t count_before, bytes_before, count_after, bytes_after;
  };
  const Row rows[] = {
      {verify::kALLTOALL, 6, 24, 6, 24},  {verify::kREDUCE_SCATTER, 6, 24, 6, 8},
      {verify::kALLREDUCE, 6, 24, 6, 24}, {verify::kALLGATHER, 6, 8, 6, 24},
      {verify::kSCATTER, 2, 72, 6, 24},   {verify::kGATHER, 6, 24, 2, 72},
      {verify::kREDUCE, 6, 24, 2, 24},    {verify::kBROADCAST, 2, 24, 6, 24},
  };
  for (const Row &row : rows) {
    const Problem problem{row.collective, {2, 3}, "01", 24, verify::kINT32, verify::kSUM};
    const verify::Rows before = verify::rows_before(problem), after = verify::rows_after(problem);
    CHECK_EQ(before.count, row.count_before);
    CHECK_EQ(before.row_bytes, row.bytes_before);
    CHECK_EQ(after.count, row.count_after);
    CHECK_EQ(after.row_bytes, row.bytes_after);
    CHECK_EQ(before.at_pes,
             row.collective != verify::kSCATTER && row.collective != verify::kBROADCAST);
    CHECK_EQ(after.at_pes, row.collective != verify::kGATHER && row.collective != verify::kREDUCE);
  }
}

// ---- operators

template <class T>
void check_integers(int type) {
  using Limits = std::numeric_limits<T>;
  const T low = Limits::min(), high = Limits::max();
  CHECK_EQ(+reduced<T>(type, verify::kSUM, {high, 1}), +low);
  CHECK_EQ(+reduced<T>(type, verify::kPROD, {high, 2}), +static_cast<T>(-2));
  CHECK_EQ(+reduced<T>(type, verify::kPROD, {static_cast<T>(-1), static_cast<T>(-1)}), +T(1));
  CHECK_EQ(+reduced<T>(type, verify::kMIN, {high, low, 5}), +low);
  CHECK_EQ(+reduced<T>(type, verify::kMAX, {low, high, 5}), +high);
  CHECK_EQ(+reduced<T>(type, verify::kMAX, {low, low}), +low);
  CHECK_EQ(+reduced<T>(type, verify::kMIN, {high, high}), +high);
  CHECK_EQ(+reduced<T>(type, verify::kAND, {0x6c, 0x3a, 0x7f}), +T(0x28));
  CHECK_EQ(+reduced<T>(type, verify::kOR, {0x60, 0x12, 0x01}), +T(0x73));
  CHECK_EQ(+reduced<T>(type, verify::kXOR, {0x6c, 0x3a, 0x7f}), +T(0x29));
}

TEST(IntegerOperators_Wrap) {
#define CHECK_ROW(ENUM, code, name, T, ...) \
  if constexpr (std::is_integral_v<T>) check_integers<T>(code);
  PIDCOMM_TYPES(CHECK_ROW)
#undef CHECK_ROW
  CHECK_EQ(reduced<std::uint16_t>(verify::kUINT16, verify::kPROD, {0xffff, 0xffff}), 1);
}

template <class T>
void check_floats(int type) {
  using Limits = std::numeric_limits<T>;
  const T nan = Limits::quiet_NaN(), inf = Limits::infinity(), tiny = Limits::denorm_min();
  CHECK_EQ(reduced<T>(type, verify::kSUM, {T(1.5), T(2.25)}), T(3.75));
  CHECK_EQ(reduced<T>(type, verify::kPROD, {T(1.5), T(-2)}), T(-3));
  CHECK_EQ(reduced<T>(type, verify::kMIN, {T(3), -inf, T(2)}), -inf);
  CHECK_EQ(reduced<T>(type, verify::kMAX, {T(-3), T(-2)}), T(-2));
  for (int op : {verify::kSUM, verify::kPROD, verify::kMIN, verify::kMAX}) {
    CHECK(std::isnan(reduced<T>(type, op, {nan, T(1)})));
    CHECK(std::isnan(reduced<T>(type, op, {T(1), nan})));
    CHECK(std::isnan(reduced<T>(type, op, {inf, T(1), nan, -inf})));
  }
  CHECK(std::isnan(reduced<T>(type, verify::kSUM, {inf, -inf})));
  for (const std::vector<T> &zeros : {std::vector<T>{T(0), T(-0.0)}, {T(-0.0), T(0)}}) {
    CHECK(std::signbit(reduced<T>(type, verify::kMIN, zeros)));
    CHECK(!std::signbit(reduced<T>(type, verify::kMAX, zeros)));
  }
  CHECK(std::signbit(reduced<T>(type, verify::kSUM, {T(-0.0), T(-0.0), T(-0.0)})));
  CHECK_EQ(reduced<T>(type, verify::kSUM, {tiny, tiny}), 2 * tiny);
  for (int op : {verify::kAND, verify::kOR, verify::kXOR})
    CHECK(is_rejected({verify::kREDUCE, {2}, "1", 8, type, op}, 16));
}

TEST(FloatOperators_PropagateNanAndOrderMinusZeroBelowZero) {
  check_floats<float>(verify::kFLOAT32);
  check_floats<double>(verify::kFLOAT64);
}

/// Returns the bits of the reduction of two floats of 16 bits.
std::uint16_t bits_of(int type, int op, std::uint16_t a, std::uint16_t b) {
  return reduced<std::uint16_t>(type, op, {a, b});
}

TEST(FloatsOf16Bits_AreRoundedToNearestEven) {
  struct Golden {
    int type, op;
    std::uint16_t a, b, result;
  };
  using verify::kBFLOAT16, verify::kFLOAT16, verify::kMIN, verify::kPROD, verify::kSUM;
  constexpr Golden kGolden[] = {
      {kFLOAT16, kSUM, 0x3C00, 0x4000, 0x4200},    // 1 + 2 = 3
      {kFLOAT16, kSUM, 0x6800, 0x3C00, 0x6800},    // 2048 + 1: a tie, to even
      {kFLOAT16, kSUM, 0x6801, 0x3C00, 0x6802},    // 2050 + 1: a tie, to even
      {kFLOAT16, kSUM, 0x6800, 0x4200, 0x6802},    // 2048 + 3: a tie, to even
      {kFLOAT16, kSUM, 0x7BFF, 0x4C00, 0x7C00},    // 65504 + 16 is halfway to 65536: infinity
      {kFLOAT16, kSUM, 0x7BFF, 0x4B00, 0x7BFF},    // 65504 + 14 = 65504
      {kFLOAT16, kSUM, 0x0001, 0x03FF, 0x0400},    // subnormal values
      {kFLOAT16, kPROD, 0x1000, 0x0C00, 0x0002},   // 2^-11 * 2^-12 = 2^-23, subnormal
      {kFLOAT16, kPROD, 0x0C00, 0x0800, 0x0000},   // 2^-12 * 2^-13 = 2^-25: a tie, to 0
      {kFLOAT16, kMIN, 0x8000, 0x0000, 0x8000},    // -0 is below +0
      {kBFLOAT16, kSUM, 0x3F80, 0x4000, 0x4040},   // 1 + 2 = 3
      {kBFLOAT16, kSUM, 0x4380, 0x3F80, 0x4380},   // 256 + 1: a tie, to even
      {kBFLOAT16, kSUM, 0x4381, 0x3F80, 0x4382},   // 258 + 1: a tie, to even
      {kBFLOAT16, kPROD, 0x7F00, 0x4000, 0x7F80},  // 2^127 * 2 = infinity
      {kBFLOAT16, kSUM, 0x0001, 0x0001, 0x0002},   // subnormal values
  };
  for (const Golden &golden : kGolden)
    CHECK_EQ(bits_of(golden.type, golden.op, golden.a, golden.b), golden.result);
  for (int type : {kFLOAT16, kBFLOAT16}) {
    const std::uint16_t nan = type == kFLOAT16 ? 0x7E00 : 0x7FC0,
                        infinity = type == kFLOAT16 ? 0x7C00 : 0x7F80;
    for (int op : {verify::kSUM, verify::kPROD, verify::kMIN, verify::kMAX}) {
      CHECK((bits_of(type, op, nan, 0x3C00) & 0x7FFF) > infinity);
      CHECK((bits_of(type, op, 0x3C00, nan) & 0x7FFF) > infinity);
    }
    CHECK((bits_of(type, kSUM, infinity, infinity | 0x8000) & 0x7FFF) > infinity);
  }
}

// ---- order of floating-point reductions

TEST(FloatSum_AddsEgsWithinALaneAndThenLanesPairwise) {
  std::vector<float> v(16, 0.0f);
  v[0] = 16777216.0f;  // 2^24: adding 1 to it is lost, adding 2 is not; PEs 1 and 9 meet in lane 1
                       // first
  v[1] = v[9] = 1.0f;
  CHECK_EQ(reduced(verify::kFLOAT32, verify::kSUM, v), 16777218.0f);
  v = std::vector<float>(16, 0.0f);
  v[0] = 16777216.0f;  // lane 0 takes its EGs in order: 2^24 + 1 is 2^24
  v[8] = v[1] = 1.0f;
  CHECK_EQ(reduced(verify::kFLOAT32, verify::kSUM, v), 16777216.0f);
}

/// One value per PE of three entangled groups. Their sum depends on the order of the additions.
std::vector<double> rounding_values() {
  Bytes rows(24 * 8);
  verify::fill(Fill::kRounding, verify::kFLOAT64, verify::kSUM, 5, 8, rows);
  return values_of<double>(rows);
}

TEST(FloatSum_IsTheDocumentedTreeForEveryLaneSelection) {
  const std::vector<double> v = rounding_values();

  double lane[8];
  for (int i = 0; i < 8; ++i) lane[i] = (v[i] + v[i + 8]) + v[i + 16];
  CHECK_EQ(
      reduced(verify::kFLOAT64, verify::kSUM, v),
      ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7])));

  const auto along = [&](Axes axis_len, const char *mask) {
    return result<double>({verify::kREDUCE, axis_len, mask, 8, verify::kFLOAT64, verify::kSUM}, v);
  };
  const std::vector<double> low = along({2, 12}, "10");  // lane bit 0
  for (int g = 0; g < 12; ++g) CHECK_EQ(low[g], v[2 * g] + v[2 * g + 1]);
  const std::vector<double> high = along({2, 12}, "01");  // lane bits 1 and 2, all EGs
  for (int g = 0; g < 2; ++g)
    CHECK_EQ(high[g], (lane[g] + lane[g + 2]) + (lane[g + 4] + lane[g + 6]));
  const std::vector<double> egs = along({8, 3}, "01");  // no lane bit
  for (int g = 0; g < 8; ++g) CHECK_EQ(egs[g], lane[g]);
  const std::vector<double> ends = along({2, 2, 2, 3}, "1011");  // lane bits 0 and 2, all EGs
  for (int g = 0; g < 2; ++g)
    CHECK_EQ(ends[g], (lane[2 * g] + lane[2 * g + 1]) + (lane[2 * g + 4] + lane[2 * g + 5]));
}

TEST(FloatSum_AddsMembersInAscendingOrderIfGroupsHaveOtherLanesInOtherEgs) {
  const std::vector<double> v = rounding_values();
  const auto along = [&](Axes axis_len, const char *mask, int group, int members, int stride) {
    double sum = v[group];
    for (int i = 1; i < members; ++i) sum += v[group + i * stride];
    const std::vector<double> sums =
        result<double>({verify::kREDUCE, axis_len, mask, 8, verify::kFLOAT64, verify::kSUM}, v);
    CHECK_EQ(sums[group], sum);
  };
  along({12, 2}, "10", 0, 12, 1);
  along({3, 8}, "01", 2, 8, 3);
  along({6, 2, 2}, "011", 5, 4, 6);
}

TEST(FloatSum_IsTheSameTreeInReduceAllReduceAndReduceScatter) {
  const Axes axis_len = {4, 6};
  for (const char *mask : {"10", "01", "11"}) {
    const std::uint32_t group_pes = verify::groups_of(axis_len, mask).group_pes;
    const std::size_t bytes = group_pes * 8;
    Bytes rows(24 * bytes);
    verify::fill(Fill::kRounding, verify::kFLOAT32, verify::kSUM, 6, bytes, rows);
    const verify::Groups groups = verify::groups_of(axis_len, mask);
    const Bytes row = verify::expected(
        {verify::kREDUCE, axis_len, mask, bytes, verify::kFLOAT32, verify::kSUM}, rows);
    const Bytes all = verify::expected(
        {verify::kALLREDUCE, axis_len, mask, bytes, verify::kFLOAT32, verify::kSUM}, rows);
    const Bytes own = verify::expected(
        {verify::kREDUCE_SCATTER, axis_len, mask, bytes, verify::kFLOAT32, verify::kSUM}, rows);
    for (std::uint32_t pe = 0; pe < 24; ++pe) {
      CHECK(std::memcmp(&all[pe * bytes], &row[groups.group[pe] * bytes], bytes) == 0);
      CHECK(std::memcmp(&own[pe * 8], &row[groups.group[pe] * bytes + groups.member[pe] * 8], 8) ==
            0);
    }
  }
}

// ---- comparison

TEST(Compare_CountsWrongElementsAndDescribesTheFirst) {
  const Bytes want = bytes_of<std::int16_t>({1, 2, 3, 4, 5, 6, 7, 8});
  const Bytes got = bytes_of<std::int16_t>({1, 2, 3, 4, 5, -6, 7, 9});
  const verify::Verdict verdict = verify::compare(verify::kINT16, 8, got, want);
  CHECK_EQ(verdict.wrong, 2u);
  CHECK_EQ(verdict.first, "PE 1, element 1 (byte 2): got -6 (0xfffa), want 6 (0x6)");
  CHECK_EQ(verify::compare(verify::kINT16, 8, want, want).wrong, 0u);
}

TEST(Compare_TreatsNansAsEqualInReductionsOnlyAndNeverZerosOfDifferentSign) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Bytes want = bytes_of<float>({nan, 0.0f}), other = bytes_of<float>({-nan, 0.0f}),
              zero = bytes_of<float>({nan, -0.0f});
  CHECK_EQ(verify::compare(verify::kFLOAT32, 8, other, want, true).wrong, 0u);
  CHECK_EQ(verify::compare(verify::kFLOAT32, 8, other, want, false).wrong, 1u);
  CHECK_EQ(verify::compare(verify::kFLOAT32, 8, zero, want, true).wrong, 1u);
  CHECK_EQ(verify::compare(verify::kUINT32, 8, other, want, true).wrong, 1u);
}

TEST(Check_FindsEveryCorruptedByteThatExpectedAndCompareFind) {
  for (int collective = verify::kALLTOALL; collective <= verify::kBROADCAST; ++collective) {
    const Problem problem{collective, {4, 6}, "01", 8208, verify::kUINT16, verify::kSUM};
    Bytes before(verify::rows_before(problem).bytes());
    verify::fill_distinct(3, verify::rows_before(problem).row_bytes, before);
    Bytes got = verify::expected(problem, before);
    CHECK_EQ(verify::check(problem, before, got).wrong, 0u);
    const std::size_t row_bytes = verify::rows_after(problem).row_bytes;
    const Bytes want = got;
    got[1] ^= 1;
    got[row_bytes + 2] ^= 1;
    got[got.size() - 1] ^= 0x80;
    const verify::Verdict all = verify::check(problem, before, got);
    const verify::Verdict one =
        verify::compare(problem.type, row_bytes, got, want, true,
                        verify::rows_after(problem).at_pes ? "PE" : "host row");
    CHECK_EQ(all.wrong, 3u);
    CHECK_EQ(one.wrong, 3u);
    CHECK_EQ(all.first, one.first);
  }
}

TEST(LargePayloads_AreRightOnAllCpus) {
  const Axes axis_len = {8, 4};
  const std::size_t words = 20000;  // 5 MB: over the threshold
  const Problem problem{verify::kALLREDUCE, axis_len,        "11",
                        words * 8,          verify::kUINT64, verify::kSUM};
  std::vector<std::uint64_t> before(32 * words);
  for (std::size_t i = 0; i < before.size(); ++i) before[i] = i;
  const std::vector<std::uint64_t> after = result(problem, before);
  for (std::size_t i = 0; i < after.size(); ++i)
    CHECK_EQ(after[i], 32 * (i % words) + words * (31 * 32 / 2));
}

#define COUNT_ROW(...) +1
constexpr int kFirstFreeCollective = verify::kALLTOALL PIDCOMM_COLLECTIVES(COUNT_ROW),
              kFirstFreeOp = verify::kSUM PIDCOMM_OPS(COUNT_ROW);
#undef COUNT_ROW

TEST(InvalidProblems_AreRejected) {
  CHECK(is_rejected({verify::kALLTOALL, {2, 3}, "1", 24, verify::kINT32}, 144));   // mask too short
  CHECK(is_rejected({verify::kALLTOALL, {2, 3}, "1x", 24, verify::kINT32}, 144));  // not a mask
  CHECK(is_rejected({verify::kALLTOALL, {2, 0}, "10", 24, verify::kINT32}, 0));    // no PE
  CHECK(is_rejected({verify::kALLTOALL, {2, 3}, "11", 28, verify::kINT32}, 168));  // no 6 blocks
  CHECK(is_rejected({verify::kALLTOALL, {2, 3}, "10", 24, 3}, 144));               // no type
  CHECK(
      is_rejected({kFirstFreeCollective, {2, 3}, "10", 24, verify::kINT32}, 144));  // no collective
  CHECK(is_rejected({verify::kREDUCE, {2, 3}, "10", 24, verify::kINT32, kFirstFreeOp},
                    144));                                                         // no operator
  CHECK(is_rejected({verify::kALLTOALL, {2, 3}, "10", 24, verify::kINT32}, 143));  // not the input
}

// ---- fills

TEST(DistinctFill_RepeatsNoWordInAnyRow) {
  Bytes rows(64 * 1024);
  verify::fill_distinct(9, 1024, rows);
  const std::vector<std::uint64_t> words = values_of<std::uint64_t>(rows);
  CHECK_EQ(std::set<std::uint64_t>(words.begin(), words.end()).size(), words.size());
  Bytes other(rows.size());
  verify::fill_distinct(10, 1024, other);
  CHECK(rows != other);
  verify::fill_distinct(9, 1024, other);
  CHECK(rows == other);
}

/// Are the columns' reductions from the first row to the last and from the last to the first the
/// same?
bool is_any_order_equal(int type, int op, const Bytes &rows, std::size_t row_bytes) {
  const std::size_t count = rows.size() / row_bytes;
  Bytes reversed;
  for (std::size_t row = count; row-- > 0;)
    reversed.insert(reversed.end(), &rows[row * row_bytes], &rows[row * row_bytes] + row_bytes);
  const Problem problem{
      verify::kREDUCE, {static_cast<std::uint32_t>(count)}, "1", row_bytes, type, op};
  return verify::compare(type, row_bytes, verify::expected(problem, rows),
                         verify::expected(problem, reversed), true)
             .wrong == 0;
}

TEST(ExactAndSpecialFills_GiveTheSameResultInAnyOrder) {
  for (std::size_t count : {2u, 15u, 64u, 1024u})
    for (Fill kind : {Fill::kExact, Fill::kSpecial})
      for (int op : {verify::kSUM, verify::kPROD, verify::kMIN, verify::kMAX}) {
        Bytes rows(count * 512);
        for (int type : {verify::kFLOAT32, verify::kFLOAT64, verify::kFLOAT16, verify::kBFLOAT16}) {
          verify::fill(kind, type, op, 11, 512, rows);
          CHECK(is_any_order_equal(type, op, rows, 512));
        }
      }
}

TEST(RoundingFill_ShowsTheOrderOfAdditions) {
  for (int op : {verify::kSUM, verify::kPROD}) {
    Bytes rows(64 * 512);
    verify::fill(Fill::kRounding, verify::kFLOAT32, op, 11, 512, rows);
    CHECK(!is_any_order_equal(verify::kFLOAT32, op, rows, 512));
    for (float value : values_of<float>(rows)) CHECK(std::isfinite(value));
  }
}

TEST(SpecialFill_HasNanInfinitySignedZerosAndDenormals) {
  Bytes rows(64 * 512);
  for (int op : {verify::kSUM, verify::kPROD, verify::kMIN, verify::kMAX}) {
    verify::fill(Fill::kSpecial, verify::kFLOAT64, op, 11, 512, rows);
    const std::vector<double> values = values_of<double>(rows);
    const auto has = [&](auto test) { return std::any_of(values.begin(), values.end(), test); };
    CHECK(has([](double x) { return std::isnan(x); }));
    CHECK(has([](double x) { return std::isinf(x) && x > 0; }));
    CHECK(has([](double x) { return std::isinf(x) && x < 0; }));
    CHECK(has([](double x) { return x == 0 && std::signbit(x); }));
    CHECK(has([](double x) { return std::fpclassify(x) == FP_SUBNORMAL; }));
  }
}

TEST(FillForAnOperator_GivesResultsThatDependOnEveryPe) {
  for (int type :
       {+verify::kUINT8, +verify::kINT8, +verify::kUINT16, +verify::kINT32, +verify::kUINT64})
    for (int op : {verify::kPROD, verify::kAND, verify::kOR, verify::kXOR}) {
      const std::size_t count = 64, row_bytes = 1024;
      Bytes rows(count * row_bytes);
      verify::fill(verify::fill_for(true, type, op), type, op, 13, row_bytes, rows);
      const Problem problem{verify::kREDUCE, {count}, "1", row_bytes, type, op};
      const Bytes all = verify::expected(problem, rows);
      for (std::size_t row = 0; row < count;
           ++row) {  // a skipped PE (its row is replaced by the next) changes the result
        Bytes without = rows;
        std::memcpy(&without[row * row_bytes], &rows[(row + 1) % count * row_bytes], row_bytes);
        CHECK(verify::expected(problem, without) != all);
      }
    }
}

}  // namespace
