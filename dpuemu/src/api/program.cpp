// Implements dpu.h, dpu_program.h, dpu_log.h, dpuemu.h: PE programs.
#include <dpu.h>
#include <dpu_log.h>
#include <dpu_log_internals.h>
#include <dpu_management.h>
#include <dpu_program.h>
#include <dpuemu.h>

#include <algorithm>
#include <bit>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/explanation.h"
#include "base/guard.h"
#include "check/compile.h"
#include "machine/host_ownership.h"
#include "machine/machine.h"
#include "machine/program_file.h"
#include "machine/symbols.h"
#include "pe/launch.h"
#include "profile/profile.h"
#include "trace/trace.h"

using namespace dpuemu;

namespace {

const Program *as_program(const dpu_program_t *program) {
  return reinterpret_cast<const Program *>(program);
}
dpu_program_t *as_handle(const Program *program) {
  return reinterpret_cast<dpu_program_t *>(const_cast<Program *>(program));
}

/// read(file) fills in the bytes of the program file. name: of the file, for error sentences.
template <class Read>
dpu_error_t load(const dpu_set_t &dpu_set, const char *name, dpu_program_t **handle, Read read) {
  return guarded([&] {
    PinnedSet set;
    dpu_error_t status = set.pin(dpu_set);
    if (status != DPU_OK) return status;
    if (set.is_single_dpu() && set.members(0) == 0) return DPU_ERR_DPU_DISABLED;
    HostSpan span("dpu_load");
    std::vector<char> file;
    status = read(file);
    if (status != DPU_OK) return status;
    const Program *program;
    status = find_or_parse_program({reinterpret_cast<const uint8_t *>(file.data()), file.size()},
                                   name, program);
    if (status == DPU_OK) program = program_for_settings(*program, file, name);
    if (status == DPU_OK) name_program(*program, name, {file.data(), file.size()});
    if (status == DPU_OK && trace_is_on()) name_traced_program(*program, name);
    span.add("program", name != nullptr ? name : "");
    if (status == DPU_OK) status = program->check_fit(Machine::instance().chip());
    if (status == DPU_OK) status = load_program(set, *program);
    if (status == DPU_OK && handle != nullptr) *handle = as_handle(program);
    return status;
  });
}

dpu_error_t load_bytes(const dpu_set_t &dpu_set, const uint8_t *bytes, size_t count,
                       dpu_program_t **handle) {
  return load(dpu_set, "the program in memory", handle, [&](std::vector<char> &file) {
    if (bytes == nullptr)
      return explained(DPU_ERR_ELF_INVALID_FILE, "the address of the program is NULL");
    file.assign(bytes, bytes + count);
    return DPU_OK;
  });
}

/// Calls act(pinned set) while no PE of the set runs.
template <class Act>
dpu_error_t between_runs(const dpu_set_t &dpu_set, Act act) {
  return guarded([&] {
    PinnedSet set;
    const dpu_error_t status = set.pin(dpu_set);
    if (status != DPU_OK) return status;
    HostOwnership ownership;
    for (Rank *rank : set.ranks())
      if (const dpu_error_t own = ownership.take(*rank); own != DPU_OK) return own;
    return act(set);
  });
}

}  // namespace

dpu_error_t dpu_load(struct dpu_set_t dpu_set, const char *binary_path,
                     struct dpu_program_t **program) {
  return load(dpu_set, binary_path, program, [&](std::vector<char> &file) {
    if (binary_path == nullptr) return explained(DPU_ERR_ELF_NO_SUCH_FILE, "the path is NULL");
    return read_program_file(binary_path, file);
  });
}

dpu_error_t dpu_load_from_memory(struct dpu_set_t dpu_set, uint8_t *buffer, size_t buffer_size,
                                 struct dpu_program_t **program) {
  return load_bytes(dpu_set, buffer, buffer_size, program);
}

dpu_error_t dpu_load_from_incbin(struct dpu_set_t dpu_set, struct dpu_incbin_t *incbin,
                                 struct dpu_program_t **program) {
  return incbin != nullptr ? load_bytes(dpu_set, incbin->buffer, incbin->size, program)
                           : load_bytes(dpu_set, nullptr, 0, program);
}

dpu_error_t dpu_get_symbol(struct dpu_program_t *program, const char *symbol_name,
                           struct dpu_symbol_t *symbol) {
  return guarded([&] {
    return symbol != nullptr ? find_symbol(as_program(program), symbol_name, *symbol)
                             : DPU_ERR_INTERNAL;
  });
}

dpu_error_t dpu_launch(struct dpu_set_t dpu_set, dpu_launch_policy_t policy) {
  return guarded([&] {
    PinnedSet set;
    const dpu_error_t status = set.pin(dpu_set);
    if (status != DPU_OK) return status;
    if (policy != DPU_SYNCHRONOUS && policy != DPU_ASYNCHRONOUS)
      return DPU_ERR_INVALID_LAUNCH_POLICY;
    if (set.is_single_dpu() && set.members(0) == 0) return DPU_ERR_DPU_DISABLED;
    return policy == DPU_SYNCHRONOUS ? run_programs(set) : queue_programs(set);
  });
}

namespace {

/// Calls write(text) with the output of a single DPU, then clears the output.
template <class Write>
dpu_error_t take_log(const dpu_set_t &dpu_set, Write write) {
  return between_runs(dpu_set, [&](const PinnedSet &set) {
    if (!set.is_single_dpu()) return DPU_ERR_INVALID_DPU_SET;
    if (set.members(0) == 0) return DPU_ERR_DPU_DISABLED;
    Pe &pe = set.ranks()[0]->pes[std::countr_zero(set.members(0))];
    if (pe.program == nullptr || !pe.program->prints()) return DPU_ERR_LOG_CONTEXT_MISSING;
    if (const dpu_error_t status = write(pe.log); status != DPU_OK) return status;
    const dpu_error_t log_status = pe.log_status;
    pe.log.clear();
    pe.log_status = DPU_OK;
    return log_status;
  });
}

}  // namespace

dpu_error_t dpu_log_read(struct dpu_set_t dpu_set, FILE *stream) {
  return take_log(dpu_set, [&](const auto &log) {
    if (stream == nullptr) return DPU_ERR_INTERNAL;
    return std::fwrite(log.data(), 1, log.size(), stream) == log.size() ? DPU_OK : DPU_ERR_SYSTEM;
  });
}

dpu_error_t dpulog_read_for_dpu(struct dpu_t *dpu, FILE *stream) {
  return dpu_log_read(dpu_set_from_dpu(dpu), stream);
}

dpu_error_t dpulog_read_for_dpu_(struct dpu_t *dpu, dpu_log_print_fct_t print_fct, void *arg) {
  return take_log(dpu_set_from_dpu(dpu), [&](const auto &log) {
    return print_fct != nullptr ? print_fct(arg, "%.*s", static_cast<int>(log.size()), log.data())
                                : DPU_ERR_INTERNAL;
  });
}

dpu_error_t dpulog_c_print_fct(void *arg, const char *fmt, ...) {
  va_list arguments;
  va_start(arguments, fmt);
  const int printed = std::vfprintf(static_cast<FILE *>(arg), fmt, arguments);
  va_end(arguments);
  return printed >= 0 ? DPU_OK : DPU_ERR_SYSTEM;
}

// dpu_get_program takes no lock, because collectives call it for every DPU. The handle of a freed
// DPU reads as zero.
struct dpu_program_t *dpu_get_program(struct dpu_t *dpu) {
  return dpu == nullptr || dpu->pe == nullptr ? nullptr : as_handle(dpu->pe->program);
}

dpu_error_t dpuemu_stop(struct dpu_set_t dpu_set) {
  return guarded([&] {
    PinnedSet set;
    const dpu_error_t status = set.pin(dpu_set);
    for (Rank *rank : set.ranks()) rank->stop_run();
    return status;
  });
}

dpu_error_t dpuemu_get_report(struct dpu_set_t dpu_set, dpuemu_report_t *report) {
  return between_runs(dpu_set, [&](const PinnedSet &set) {
    if (report == nullptr) return DPU_ERR_INTERNAL;
    dpuemu_report_t sum = {};
    for (size_t i = 0; i < set.ranks().size(); ++i)
      add_to_report(*set.ranks()[i], set.members(i), sum);
    if (sum.pes == 0) return DPU_ERR_NO_PROGRAM_LOADED;
    *report = sum;
    return DPU_OK;
  });
}

dpu_error_t dpuemu_get_fault(struct dpu_set_t dpu_set, char *text, size_t size) {
  return between_runs(dpu_set, [&](const PinnedSet &set) {
    if (text == nullptr || size == 0) return DPU_ERR_INTERNAL;
    text[0] = '\0';
    if (const FaultPlace place = first_fault(set); place.rank != nullptr)
      describe_fault(place.rank->id(), place.dpu_index, place.rank->pes[place.dpu_index].fault,
                     text, size);
    return DPU_OK;
  });
}
