#include "values.h"

#include "status.h"

namespace core {

pidcomm_request Request::value() const {
  if (mask.find('\0') != std::string::npos)
    throw StatusError(PIDCOMM_ERR_MASK, "the axis mask contains a null character");
  pidcomm_request request = {
      sizeof(pidcomm_request), collective, mask.c_str(), bytes, src, dst, nullptr, 0, type, op};
  if (operation != nullptr) request.operation = &operation->value();
  return request;
}

Operator::Operator(uint64_t element_bytes, uint64_t combine, uint64_t store,
                   const nb::bytes &identity)
    : identity_(identity.c_str(), identity.c_str() + identity.size()) {
  value_.element_bytes = element_bytes;
  value_.combine = reinterpret_cast<decltype(value_.combine)>(combine);
  value_.store = reinterpret_cast<decltype(value_.store)>(store);
  if (!identity_.empty()) value_.identity = identity_.data();
}

std::unique_ptr<Operator> Operator::of_library(const std::string &name, int type, double factor) {
  std::unique_ptr<Operator> own(new Operator);
  own->factor_ = factor;
#define PIDCOMM_ROW(row) \
  if (name == #row) check(pidcomm_operator_##row(type, &own->value_));
  PIDCOMM_OPERATORS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  if (name == "scaled_sum") check(pidcomm_operator_scaled_sum(type, &own->factor_, &own->value_));
  return own;
}

pidcomm_options options_of(const OptionCodes &codes) {
  const auto [technique, isa, threads, coherence, scratch_offset] = codes;
  return {sizeof(pidcomm_options), technique, isa, threads, coherence, scratch_offset};
}

pidcomm_hosts_settings settings_of(const HostsSettings &settings) {
  const auto [timeout_s, link_gb_s, link_latency_us, overlap, transport] = settings;
  return {
      sizeof(pidcomm_hosts_settings), timeout_s, link_gb_s, link_latency_us, overlap, transport};
}

nb::dict dict_of(const pidcomm_trace &trace) {
  nb::dict dict;
#define PIDCOMM_VALUE_NUMBER(value) value
#define PIDCOMM_VALUE_TECHNIQUE(value) pidcomm_name(PIDCOMM_TABLE_TECHNIQUE, value)
#define PIDCOMM_VALUE_ISA(value) pidcomm_name(PIDCOMM_TABLE_ISA, value)
#define PIDCOMM_VALUE_COHERENCE(value) pidcomm_name(PIDCOMM_TABLE_COHERENCE, value)
#define PIDCOMM_ROW(ctype, name, table, ...) dict[#name] = PIDCOMM_VALUE_##table(trace.name);
  PIDCOMM_TRACE_FIELDS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  return dict;
}

nb::dict dict_of(const pidcomm_audit &audit) {
  nb::dict dict;
#define PIDCOMM_ROW(name, ...) dict[#name] = audit.name;
  PIDCOMM_AUDIT_FIELDS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  return dict;
}

}  // namespace core
