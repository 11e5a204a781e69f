// Combines rows of elements with the operator of a plan.
#pragma once

#include <cstddef>
#include <cstring>

#include "exec/reducer.h"
#include "line_kernels/kernels.h"
#include "plan/plan.h"

namespace pidcomm {

/// The three functions of pidcomm_operator, for rows of `bytes` bytes.
class RowFold {
 public:
  RowFold(const Plan &plan, const Kernels &kernels)
      : operation_(plan.fold->operation),
        reducer_(plan.fold->has_operation() ? nullptr : reducer_of(kernels, plan)),
        plan_(plan) {}

  /// Whether `store` copies the partial results.
  bool stores_partials() const { return keeps_elements() && !plan_.finish; }

  /// Starts with the row of the first member, or continues with the row of a later member.
  void add(std::byte *partials, const std::byte *row, std::size_t bytes, bool is_first) const {
    if (!is_first && reducer_ != nullptr)
      reducer_->combine(partials, row, bytes);
    else if (!is_first)
      operation_.combine(partials, row, count(bytes), operation_.context);
    else if (keeps_elements())
      std::memcpy(partials, row, bytes);
    else
      operation_.load(partials, row, count(bytes), operation_.context);
  }
  void store(std::byte *row, const std::byte *partials, std::size_t bytes,
             std::size_t members) const {
    if (keeps_elements()) {
      std::memcpy(row, partials, bytes);
      const auto finish = finish_of(plan_, static_cast<uint32_t>(members));
      if (finish) finish->apply(row, bytes);
    } else {
      operation_.store(row, partials, count(bytes), members, operation_.context);
    }
  }

 private:
  bool keeps_elements() const { return operation_.partial_bytes == 0; }
  std::size_t count(std::size_t bytes) const { return bytes / operation_.element_bytes; }

  const pidcomm_operator &operation_;
  const Reducer *const reducer_;
  const Plan &plan_;
};

/// Fills a row with copies of an element. bytes: a multiple of the element's size.
inline void fill_row(std::byte *row, std::size_t bytes, const std::vector<std::byte> &element) {
  for (std::size_t at = 0; at < bytes; at += element.size())
    std::memcpy(row + at, element.data(), element.size());
}

}  // namespace pidcomm
