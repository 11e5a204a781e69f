// The requests of host 0 to the switch, and the switch that carries them out.
#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/geometry.h"
#include "line_kernels/kernels.h"
#include "plan/request.h"
#include "pool/layout.h"
#include "pool/wait.h"

namespace pidcomm {

namespace {

constexpr uint64_t kReduceBytes = 65536;  // of a unit of work

}  // namespace

void Pool::reduce(const pidcomm_reduction &reduction, double timeout_s) {
  if (!has_switch() || number_ != seat_of(0))
    fail(PIDCOMM_ERR_ARGUMENT, memory_->title(),
         ": host 0 of a pool with a switch reduces; this is host ", host(), " of a pool with ",
         has_switch() ? "a" : "no", " switch");
  check_op(reduction.op, ElementType::of(reduction.type));
  if (reduction.rows < 1 || reduction.bytes % kWordBytes != 0 ||
      reduction.stride < reduction.bytes ||
      reduction.rows - 1 > settings_.bytes / std::max(reduction.stride, kWordBytes))
    fail(PIDCOMM_ERR_ARGUMENT, memory_->title(), ": a reduction of ", reduction.rows, " rows of ",
         reduction.bytes, " bytes, ", reduction.stride,
         " bytes apart, needs a row, bytes divisible by ", kWordBytes,
         ", and a distance of at least the bytes");
  check_range("reduction", reduction.offset,
              (reduction.rows - 1) * reduction.stride + reduction.bytes);
  guarded([&] {
    head().reduction = reduction;
    flush(&head().reduction, sizeof reduction);
    set(head().asked, ++reductions_);
    wait(
        &head().done, timeout_s, [this] { return has_reached(head().done, reductions_); },
        [this] { check_alive(); }, [this] { return name_of(kSwitchSeat); });
  });
}

void Pool::serve() {
  bool is_deserted = false;
  const auto check = [&] {
    is_deserted = true;
    for (uint32_t host = 0; host < hosts(); ++host)
      is_deserted = is_deserted && is_gone(seat_of(host));
  };
  for (uint32_t count = 1;; ++count) {
    wait(
        &head().asked, 1e9, [&] { return is_deserted || has_reached(head().asked, count); }, check,
        [] { return std::string("hosts"); });
    if (!has_reached(head().asked, count)) return;
    flush(&head().reduction, sizeof head().reduction);
    carry_out(head().reduction);
    set(head().done, count);
  }
}

/// Row 0 becomes the reduction of all rows, in blocks that stay in the caches.
void Pool::carry_out(const pidcomm_reduction &reduction) const {
  const Reducer &reducer = kernels_.reducers[reduction.type - PIDCOMM_INT8][reduction.op];
  for (uint64_t at = 0; at < reduction.bytes; at += kReduceBytes) {
    const uint64_t size = std::min(kReduceBytes, reduction.bytes - at);
    std::byte *const into = data() + reduction.offset + at;
    flush(into, size);
    for (uint32_t row = 1; row < reduction.rows; ++row) {
      flush(into + row * reduction.stride, size);
      reducer.combine(into, into + row * reduction.stride, size);
    }
    flush(into, size);
  }
}

}  // namespace pidcomm
