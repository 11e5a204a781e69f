#include "values.h"

#include "status.h"

namespace core {

pidcomm_request Request::value() const {
  if (mask.find('\0') != std::string::npos) throw StatusError(PIDCOMM_ERR_MASK, "the axis mask contains a null character");
  return {collective, mask.c_str(), bytes, src, dst, nullptr, 0, type, op};
}

pidcomm_options options_of(const OptionCodes &codes) {
  const auto [technique, isa, threads, coherence, scratch_offset] = codes;
  return {technique, isa, threads, coherence, scratch_offset};
}

nb::dict dict_of(const pidcomm_trace &trace) {
  nb::dict dict;
  dict["technique"] = pidcomm_technique_name(trace.technique);
  dict["isa"] = pidcomm_isa_name(trace.isa);
  dict["threads"] = trace.threads;
  dict["coherence"] = pidcomm_coherence_name(trace.coherence);
#define PIDCOMM_FIELD(name) dict[#name] = trace.name;
  PIDCOMM_FIELD(seconds_total)
  PIDCOMM_FIELD(seconds_plan)
  PIDCOMM_FIELD(seconds_acquire)
  PIDCOMM_FIELD(seconds_pass)
  PIDCOMM_FIELD(seconds_from_pes)
  PIDCOMM_FIELD(seconds_host)
  PIDCOMM_FIELD(seconds_to_pes)
  PIDCOMM_FIELD(seconds_load)
  PIDCOMM_FIELD(seconds_reorder)
  PIDCOMM_FIELD(seconds_launch)
  PIDCOMM_FIELD(pe_loads)
  PIDCOMM_FIELD(pe_launches)
  PIDCOMM_FIELD(pe_cycles)
  PIDCOMM_FIELD(pe_bytes)
  PIDCOMM_FIELD(mram_bytes_read)
  PIDCOMM_FIELD(mram_bytes_written)
  PIDCOMM_FIELD(host_bytes_read)
  PIDCOMM_FIELD(host_bytes_written)
  PIDCOMM_FIELD(bytes_staged)
  PIDCOMM_FIELD(lines_loaded)
  PIDCOMM_FIELD(lines_stored)
  PIDCOMM_FIELD(lines_flushed)
  PIDCOMM_FIELD(lines_prefetched)
  PIDCOMM_FIELD(max_loads_of_a_line)
  PIDCOMM_FIELD(max_stores_of_a_line)
  PIDCOMM_FIELD(distinct_lines_loaded)
  PIDCOMM_FIELD(distinct_lines_stored)
  PIDCOMM_FIELD(lines_outside)
  PIDCOMM_FIELD(loads_unflushed)
#undef PIDCOMM_FIELD
  return dict;
}

}  // namespace core
