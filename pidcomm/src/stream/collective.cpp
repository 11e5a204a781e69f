#include "stream/collective.h"

#include <algorithm>

#include "base/sized.h"
#include "exec/default_options.h"

namespace pidcomm {

namespace {

bool may_load_program(const pidcomm_options &options) {
  switch (options.technique) {
    case PIDCOMM_TECHNIQUE_AUTO:
      return options.scratch_offset != 0;
#define PIDCOMM_ROW(ENUM, code, name, path, steps, ...) \
  case code:                                            \
    return (steps & PIDCOMM_STEP_PR) != 0;
      PIDCOMM_TECHNIQUES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    default:
      return false;
  }
}

/// Whether the techniques of the options carry out a reduce and a broadcast.
bool has_reduce_and_broadcast(const pidcomm_options &options) {
  constexpr uint64_t both = 1u << PIDCOMM_REDUCE | 1u << PIDCOMM_BROADCAST;
  switch (options.technique) {
#define PIDCOMM_ROW(ENUM, code, name, path, steps, collectives, ...) \
  case code:                                                         \
    return (uint64_t{collectives} & both) == both;
    PIDCOMM_TECHNIQUES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    default:
      return true;
  }
}

void set_host(pidcomm_request &request, uint64_t offset, uint64_t rows, uint64_t row_bytes,
              uint64_t stride) {
  request.host = static_cast<std::byte *>(request.host) + offset;
  request.host_bytes = (rows - 1) * stride + row_bytes;
  request.host_stride = stride;
}

Plan tile_plan(const CollectiveStep &step, const pidcomm_request &request) {
  Options options = resolve(&step.options);
  options.technique = PIDCOMM_TECHNIQUE_TILE;
  return make_plan(step.executor->cube(), request, options, step.heap_base);
}

}  // namespace

void CollectiveStep::copy_borrowed() {
  if (request.mask != nullptr) mask = request.mask;
  if (request.operation != nullptr) {
    operation = received(request.operation, "operation");
    if (const auto *const element = static_cast<const std::byte *>(operation->identity)) {
      identity.assign(element, element + operation->element_bytes);
      operation->identity = identity.data();  // a move of the step keeps the address
    }
  }
  if (request.collective == PIDCOMM_SENDRECV && request.host_bytes != 0) {
    const auto *const begin = static_cast<const std::byte *>(request.host);
    messages.assign(begin, begin + request.host_bytes);
  }
}

pidcomm_request CollectiveStep::own_request() const {
  pidcomm_request own = request;
  if (own.mask != nullptr) own.mask = mask.c_str();
  if (operation) own.operation = &*operation;
  if (!messages.empty()) own.host = const_cast<std::byte *>(messages.data());  // only read
  return own;
}

bool is_cut_by_words(int collective) {
  return collective == PIDCOMM_ALLREDUCE || collective == PIDCOMM_REDUCE ||
         collective == PIDCOMM_BROADCAST;
}

CollectivePart::CollectivePart(const CollectiveStep &step, uint32_t part, uint32_t parts)
    : request(step.own_request()),
      plan(tile_plan(step, request)),
      may_load_(may_load_program(step.options)),
      has_passes_(has_reduce_and_broadcast(step.options)) {
  if (parts == 1) return;
  const uint64_t whole_stride = stride();
  request.bytes /= parts;
  const uint64_t offset = part * request.bytes;
  if (plan.in_pe_bytes != 0) request.src += offset;
  if (plan.out_pe_bytes != 0) request.dst += offset;
  if (has_host()) set_host(request, offset, plan.grouping.groups, request.bytes, whole_stride);
  plan = tile_plan(step, request);
}

uint64_t CollectivePart::stride() const {
  return std::max({plan.row_stride_bytes, plan.in_row_bytes, plan.out_row_bytes});
}

bool CollectivePart::is_cut_by_ranks(uint32_t groups) const {
  if (plan.bytes == 0 || plan.cube.axes.back().length % groups != 0 || may_load_ ||
      plan.messages != nullptr || plan.transposes)
    return false;
  return plan.mask.back() == '0' || plan.collective == PIDCOMM_SCATTER ||
         plan.collective == PIDCOMM_GATHER || plan.collective == PIDCOMM_BROADCAST;
}

bool CollectivePart::is_combined(uint32_t groups) const {
  return plan.collective == PIDCOMM_ALLREDUCE && plan.mask.back() == '1' && plan.bytes != 0 &&
         plan.type.kind != ElementType::Kind::floating && request.operation == nullptr &&
         plan.cube.axes.back().length % groups == 0 && !may_load_ && has_passes_;
}

pidcomm_request CollectivePart::of_group(uint32_t group, uint32_t groups) const {
  pidcomm_request own = request;
  if (!has_host() || groups == 1) return own;
  const uint64_t rows = plan.grouping.groups, row = plan.in_row_bytes + plan.out_row_bytes;
  if (plan.mask.back() == '0')
    set_host(own, group * (rows / groups) * stride(), rows / groups, row, stride());
  else if (plan.collective != PIDCOMM_BROADCAST)
    set_host(own, group * (row / groups), rows, row / groups, stride());
  return own;
}

}  // namespace pidcomm
