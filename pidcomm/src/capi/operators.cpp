// The functions of operators.h.
#include "pidcomm/operators.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "base/small_float.h"
#include "capi/guarded.h"
#include "pidcomm/request.hpp"
#include "plan/request.h"

namespace {

using namespace pidcomm;

__extension__ typedef __int128 Int128;

template <class T>
constexpr bool kIsSmallFloat =
    std::is_same_v<T, pidcomm_float16> || std::is_same_v<T, pidcomm_bfloat16>;
template <class T>
constexpr bool kIsFloat = kIsSmallFloat<T> || std::is_floating_point_v<T>;

/// The type of sums of elements.
template <class T>
using SumOf = std::conditional_t<
    kIsSmallFloat<T>, float,
    std::conditional_t<kIsFloat<T>, T, std::conditional_t<sizeof(T) == 8, Int128, int64_t>>>;

template <class T>
auto number(T element) {
  if constexpr (kIsSmallFloat<T>)
    return widened(element);
  else
    return element;
}

/// Returns sum / members, rounded to nearest, ties to even.
template <class Sum>
Sum mean(Sum sum, std::size_t members) {
  if constexpr (std::is_floating_point_v<Sum>) {
    return sum / static_cast<Sum>(members);
  } else {
    const Sum n = static_cast<Sum>(members);
    Sum quotient = sum / n, rest = sum % n;
    if (rest < 0) {
      rest += n;
      --quotient;
    }
    return quotient + (2 * rest > n || (2 * rest == n && quotient % 2 != 0));
  }
}

/// Sets each sum to the element, or adds the element to it.
template <class T, bool kAdds>
void sum_elements(void *partials, const void *elements, size_t count, const void *) {
  auto *const sums = static_cast<SumOf<T> *>(partials);
  const auto *const from = static_cast<const std::byte *>(elements);
  for (size_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, from + i * sizeof element, sizeof element);
    const auto value = static_cast<SumOf<T>>(number(element));
    sums[i] = kAdds ? sums[i] + value : value;
  }
}

/// Stores value(sum) for each sum. The sums may be the elements.
template <class T, class Value>
void store_values(void *elements, const void *partials, size_t count, const Value &value) {
  const auto *const sums = static_cast<const std::byte *>(partials);
  auto *const to = static_cast<std::byte *>(elements);
  for (size_t i = 0; i < count; ++i) {
    SumOf<T> sum;
    std::memcpy(&sum, sums + i * sizeof sum, sizeof sum);
    T element;
    if constexpr (kIsSmallFloat<T>)
      narrow(value(sum), element);
    else
      element = static_cast<T>(value(sum));
    std::memcpy(to + i * sizeof element, &element, sizeof element);
  }
}

template <class T>
void store_means(void *elements, const void *partials, size_t count, size_t members, const void *) {
  store_values<T>(elements, partials, count, [&](SumOf<T> sum) { return mean(sum, members); });
}

template <class T>
void store_scaled(void *elements, const void *partials, size_t count, size_t, const void *context) {
  const double factor = *static_cast<const double *>(context);
  store_values<T>(elements, partials, count, [factor](SumOf<T> sum) {
    return static_cast<SumOf<T>>(static_cast<double>(sum) * factor);
  });
}

template <class T>
constexpr T kZero{};

template <class T>
pidcomm_operator sum_of(decltype(pidcomm_operator::store) store) {
  if constexpr (std::is_floating_point_v<T>)  // changes the result of PIDCOMM_SUM
    return {sizeof(pidcomm_operator), sizeof(T), 0, nullptr, nullptr, store, nullptr, nullptr};
  else
    return {sizeof(pidcomm_operator), sizeof(T), sizeof(SumOf<T>), sum_elements<T, false>,
            sum_elements<T, true>,    store,     &kZero<T>,        nullptr};
}

template <class T>
struct Place {
  T value;
  alignas(sizeof(T) == 8 ? 8 : 4) std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t> index;
};

template <class T, bool kIsMax>
bool precedes(const Place<T> &a, const Place<T> &b) {
  const auto x = number(a.value), y = number(b.value);
  const bool x_is_nan = x != x, y_is_nan = y != y;
  if (x_is_nan != y_is_nan) return x_is_nan;
  if (x_is_nan || x == y) return a.index < b.index;
  return kIsMax ? x > y : x < y;
}

template <class T, bool kIsMax>
void keep_preceding(void *partials, const void *elements, size_t count, const void *) {
  auto *const into = static_cast<std::byte *>(partials);
  const auto *const from = static_cast<const std::byte *>(elements);
  for (size_t i = 0; i < count; ++i) {
    Place<T> own, other;
    std::memcpy(&own, into + i * sizeof own, sizeof own);
    std::memcpy(&other, from + i * sizeof other, sizeof other);
    if (precedes<T, kIsMax>(other, own)) std::memcpy(into + i * sizeof own, &other, sizeof own);
  }
}

/// The place that every other place precedes.
template <class T, bool kIsMax>
Place<T> last_place() {
  using Limits = std::numeric_limits<T>;
  Place<T> place{};
  if constexpr (kIsSmallFloat<T>)
    narrow(kIsMax ? -INFINITY : INFINITY, place.value);
  else if constexpr (kIsFloat<T>)
    place.value = kIsMax ? -Limits::infinity() : Limits::infinity();
  else
    place.value = kIsMax ? Limits::lowest() : Limits::max();
  place.index = ~decltype(place.index){0};
  return place;
}

template <class T, bool kIsMax>
pidcomm_operator place_of() {
  static const Place<T> kLast = last_place<T, kIsMax>();
  return {sizeof(pidcomm_operator),  sizeof(Place<T>), 0,      nullptr,
          keep_preceding<T, kIsMax>, nullptr,          &kLast, nullptr};
}

/// Calls visit(T{}) with the C type of an element type.
template <class Visit>
pidcomm_operator for_type(int type, const Visit &visit) {
  switch (ElementType::of(type).code) {
#define PIDCOMM_ROW(ENUM, code, name, ctype, kind) \
  case code:                                       \
    return visit(ctype{});
    PIDCOMM_TYPES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  }
  fail(PIDCOMM_ERR_INTERNAL, "no operators for type code ", type);
}

pidcomm_operator make_avg(int type) {
  return for_type(type, []<class T>(T) { return sum_of<T>(store_means<T>); });
}

pidcomm_operator make_scaled_sum(int type) {
  return for_type(type, [&]<class T>(T) -> pidcomm_operator {
    if constexpr (kIsFloat<T>)
      return sum_of<T>(store_scaled<T>);
    else
      fail(PIDCOMM_ERR_TYPE, "scaled_sum is for floats, not for ", name_of_type(type));
  });
}

pidcomm_operator make_argmin(int type) {
  return for_type(type, []<class T>(T) { return place_of<T, false>(); });
}

pidcomm_operator make_argmax(int type) {
  return for_type(type, []<class T>(T) { return place_of<T, true>(); });
}

}  // namespace

#define PIDCOMM_ROW(name)                                              \
  int pidcomm_operator_##name(int type, pidcomm_operator *operation) { \
    return guarded([&] {                                               \
      require(operation, "operation");                                 \
      *operation = make_##name(type);                                  \
    });                                                                \
  }
PIDCOMM_OPERATORS(PIDCOMM_ROW)
#undef PIDCOMM_ROW

int pidcomm_operator_scaled_sum(int type, const double *factor, pidcomm_operator *operation) {
  return guarded([&] {
    require(factor, "factor");
    require(operation, "operation");
    *operation = make_scaled_sum(type);
    operation->context = factor;
  });
}

#define PIDCOMM_ROW(ENUM, code, name)                                     \
  int pidcomm_##name(pidcomm_hypercube *cube, PIDCOMM_PARAMETERS_111) {   \
    const pidcomm_request request = request::name(PIDCOMM_ARGUMENTS_111); \
    return pidcomm_run(cube, &request, nullptr, nullptr);                 \
  }
PIDCOMM_SCANS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
