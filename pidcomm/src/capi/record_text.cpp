#include "capi/record_text.h"

#include <string_view>

#include "plan/request.h"

namespace pidcomm {

namespace {

const char *known(const char *name) { return name == nullptr ? "?" : name; }

}  // namespace

const char *text_of_state(int state) {
  switch (state) {
#define PIDCOMM_ROW(ENUM, code, text) \
  case code:                          \
    return text;
    PIDCOMM_CALL_STATES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    default:
      return "?";
  }
}

bool has_operator(int collective) {
  switch (collective) {
#define PIDCOMM_ROW(ENUM, code, name, op, ...) \
  case code:                                   \
    return op != 0;
    PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, ...) case code:
    PIDCOMM_SCANS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    return true;
    default:
      return false;
  }
}

const char *name_of_recorded(const pidcomm_record &record) {
  return record.collective < 0 ? "a refused call" : known(name_of_collective(record.collective));
}

namespace {

void add_request(TextLine &line, const pidcomm_record &record) {
  line << name_of_recorded(record);
  if (record.mask[0] != '\0')
    line << " " << record.mask << ", " << record.bytes << " bytes of "
         << known(name_of_type(record.type));
  if (has_operator(record.collective))
    line << ", " << (record.op < 0 ? "own operator" : known(name_of_op(record.op)));
  if (record.requests <= 1) return;
  line << ", ";
  if (record.state < PIDCOMM_CALL_DONE) line << "request " << record.request << " of ";
  line << "a batch of " << record.requests;
}

/// Adds the phases that took time, which are the fields seconds_NAME of the trace.
void add_phases(TextLine &line, const pidcomm_trace &trace) {
  line << ", " << known(name_of_technique(trace.technique)) << " with "
       << known(name_of_isa(trace.isa));
  const char *before = " (";
  const auto add = [&](const char *name, auto value) {
    constexpr std::string_view kPrefix = "seconds_", kTotal = "seconds_total";
    if (!std::string_view(name).starts_with(kPrefix) || value <= 0 || name == kTotal) return;
    line << before << name + kPrefix.size() << " ";
    line.seconds(static_cast<double>(value));
    before = ", ";
  };
#define PIDCOMM_ROW(ctype, name, ...) add(#name, trace.name);
  PIDCOMM_TRACE_FIELDS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  if (*before == ',') line << ")";
}

}  // namespace

TextLine line_of(const pidcomm_record &record) {
  TextLine line;
  line << "hypercube " << record.hypercube << " (" << record.shape << "), call " << record.call
       << ": ";
  add_request(line, record);
  line << ": " << text_of_state(record.state);
  if (record.awaited_hosts != 0) line << ", misses host " << record.awaited_host;
  if (record.awaited_hosts > 1) line << " and " << record.awaited_hosts - 1 << " more";
  line << ", ";
  line.seconds(record.elapsed_s);
  if (record.state == PIDCOMM_CALL_DONE && record.trace.technique != 0)
    add_phases(line, record.trace);
  if (record.state == PIDCOMM_CALL_FAILED)
    line << ", " << known(name_of_status(record.status)) << ": " << record.sentence;
  if (record.file != nullptr)
    line << ", " << record.file << ":" << static_cast<uint64_t>(record.line);
  return line;
}

}  // namespace pidcomm
