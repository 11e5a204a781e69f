#include "operators.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "elements.h"
#include "oracle.h"

namespace verify {
namespace {

enum class Kind { arith, order, bits };

Kind kind_of(int op) {
  switch (op) {
#define VERIFY_ROW(ENUM, code, name, kind) \
  case code:                               \
    return Kind::kind;
    PIDCOMM_OPS(VERIFY_ROW)
#undef VERIFY_ROW
  }
  reject("unknown operator " + std::to_string(op));
}

// ---- operators on two elements

/// Returns the minimum of IEEE 754-2019 (or the maximum if `max`): if one element is NaN the result
/// is NaN, and -0 is below +0.
template <class T>
T extreme(T a, T b, bool max) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a || b != b) return a != a ? a : b;
    if (a == b) return std::signbit(a) != max ? a : b;
  }
  return (a < b) != max ? a : b;
}

template <class T, int kOp>
T apply(T a, T b) {
  if constexpr (kIsSmallFloat<T>) {
    return T(apply<float, kOp>(float(a), float(b)));
  } else if constexpr (kOp == kMIN || kOp == kMAX) {
    return extreme(a, b, kOp == kMAX);
  } else if constexpr (std::is_floating_point_v<T>) {
    static_assert(kOp == kSUM || kOp == kPROD);
    return kOp == kSUM ? a + b : a * b;
  } else {
    // Compute with unsigned integers of at least 32 bits, for which wrapping is defined.
    using Word = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;
    const Word x = static_cast<Word>(a), y = static_cast<Word>(b);
    if constexpr (kOp == kSUM) return static_cast<T>(x + y);
    if constexpr (kOp == kPROD) return static_cast<T>(x * y);
    if constexpr (kOp == kAND) return static_cast<T>(x & y);
    if constexpr (kOp == kOR) return static_cast<T>(x | y);
    /* [operator] */
    if constexpr (kOp == kXOR) return static_cast<T>(x ^ y);
    /* [end] */
  }
}

template <class T, int kOp>
void combine(std::uint8_t *__restrict left, const std::uint8_t *__restrict right,
             std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += sizeof(T)) {
    T a, b;
    std::memcpy(&a, left + i, sizeof(T));
    std::memcpy(&b, right + i, sizeof(T));
    a = apply<T, kOp>(a, b);
    std::memcpy(left + i, &a, sizeof(T));
  }
}

// ---- folds

template <class T>
std::vector<std::uint8_t> bytes_of(T value, std::size_t element_bytes = sizeof(T)) {
  std::vector<std::uint8_t> bytes(element_bytes);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <class T>
void store(std::uint8_t *out, T value) {
  std::memcpy(out, &value, sizeof value);
}

/// The least or the greatest value: -infinity or infinity for floats.
template <class T>
T bound(bool is_greatest) {
  using Limits = std::numeric_limits<Computed<T>>;
  if constexpr (kIsFloat<T>)
    return T(is_greatest ? Limits::infinity() : -Limits::infinity());
  else
    return is_greatest ? Limits::max() : Limits::min();
}

template <class T>
T identity_of(int op) {
  switch (op) {
    case kPROD:
      return T(Computed<T>(1));
    case kMIN:
    case kMAX:
      return bound<T>(op == kMIN);
    case kAND:
      if constexpr (!kIsFloat<T>) return static_cast<T>(~T{0});
  }
  return T{};
}

/// Returns the sum of integers, divided by their number, rounded to nearest, ties to even. Every
/// integer is whole * N + rest, with 0 <= rest < N.
template <class T>
T mean_of_integers(Elements members) {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  const auto count = static_cast<Wide>(members.size());
  Wide whole = 0, rest = 0;
  for (const std::uint8_t *at : members) {
    const Wide number = value_at<T>(at), own_rest = (number % count + count) % count;
    whole += number / count - (number % count != own_rest ? 1 : 0);
    rest += own_rest;
  }
  whole += rest / count;
  rest %= count;
  return static_cast<T>(whole + (2 * rest > count || (2 * rest == count && whole % 2 != 0)));
}

/// A fold of floats that stores last(sum, N) for each sum. `last` has the type of the sum.
template <class T, class Last>
Fold fold_of_sums(Last last) {
  Fold fold{sizeof(T),
            [last](std::uint8_t *out, Elements members) {
              auto sum = static_cast<Computed<T>>(value_at<T>(members[0]));
              for (const std::uint8_t *at : members.subspan(1))
                sum += static_cast<Computed<T>>(value_at<T>(at));
              store(out, T(last(sum, members.size())));
            },
            bytes_of(T{})};
  if constexpr (!kIsSmallFloat<T>)
    fold.finish = [last](std::uint8_t *element, std::size_t members) {
      store(element, T(last(value_at<T>(element), members)));
    };
  return fold;
}

}  // namespace

bool is_defined(int op, int type) {
  switch (kind_of(op)) {
    case Kind::arith:
    case Kind::order:
      return true;
    case Kind::bits:
      return !is_float(type);
  }
  return false;
}

Combine combine_of(int op, int type) {
  if (!is_defined(op, type))
    reject("operator " + std::to_string(op) + " is not defined for type " + std::to_string(type));
  return with_type(type, [op]<class T>(T) -> Combine {
    switch (op) {
#define VERIFY_ROW(ENUM, code, name, kind)                                            \
  case code:                                                                          \
    if constexpr (Kind::kind != Kind::bits || !kIsFloat<T>) return &combine<T, code>; \
    break;
      PIDCOMM_OPS(VERIFY_ROW)
#undef VERIFY_ROW
    }
    return nullptr;
  });
}

Fold fold_of_op(int op, int type) {
  const Combine combine = combine_of(op, type);
  return with_type(type, [&]<class T>(T) -> Fold {
    return {sizeof(T),
            [combine](std::uint8_t *out, Elements members) {
              std::memcpy(out, members[0], sizeof(T));
              for (const std::uint8_t *at : members.subspan(1)) combine(out, at, sizeof(T));
            },
            bytes_of(identity_of<T>(op))};
  });
}

Fold average(int type) {
  return with_type(type, []<class T>(T) -> Fold {
    if constexpr (kIsFloat<T>)
      return fold_of_sums<T>(
          [](auto sum, std::size_t members) { return sum / static_cast<decltype(sum)>(members); });
    else
      return {sizeof(T),
              [](std::uint8_t *out, Elements members) { store(out, mean_of_integers<T>(members)); },
              bytes_of(T{})};
  });
}

Fold scaled_sum(int type, double factor) {
  return with_type(type, [factor]<class T>(T) -> Fold {
    if constexpr (kIsFloat<T>)
      return fold_of_sums<T>([factor](auto sum, std::size_t) {
        return static_cast<decltype(sum)>(static_cast<double>(sum) * factor);
      });
    else
      reject("a scaled sum is for floats");
  });
}

Fold place(int type, bool is_max) {
  return with_type(type, [is_max]<class T>(T) -> Fold {
    using Index = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    Fold fold{2 * sizeof(Index),
              [is_max](std::uint8_t *out, Elements members) {
                const std::uint8_t *best = members[0];
                for (const std::uint8_t *at : members.subspan(1)) {
                  const auto x = static_cast<Computed<T>>(value_at<T>(at)),
                             y = static_cast<Computed<T>>(value_at<T>(best));
                  const bool is_equal = x == y || (x != x && y != y);
                  if (is_equal           ? value_at<Index>(at + sizeof(Index)) <
                                               value_at<Index>(best + sizeof(Index))
                      : x != x || y != y ? x != x
                      : is_max           ? x > y
                                         : x < y)
                    best = at;
                }
                std::memcpy(out, best, 2 * sizeof(Index));
              },
              bytes_of(bound<T>(!is_max), 2 * sizeof(Index))};
    std::memset(fold.identity.data() + sizeof(Index), 0xFF, sizeof(Index));
    return fold;
  });
}

}  // namespace verify
