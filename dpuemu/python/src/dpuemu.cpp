// dpuemu._dpuemu: makes dpuemu.h callable from Python. Errors of the device API become dpuemu.Error
// and dpuemu.ArgumentError.
//
// A PE set is passed as the bytes of its struct dpu_set_t, so sets that other Python extensions
// create are also valid.
#include <dpuemu.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/calls.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// Raised in Python as Error (state of the machine) or ArgumentError (caller's arguments).
struct DeviceError : std::runtime_error {
  DeviceError(const std::string &sentence, const char *python_name)
      : std::runtime_error(sentence), name(python_name) {}
  const char *name;
};

constexpr const char *kError = "Error", *kArgumentError = "ArgumentError";

/// Names of files and symbols may have any bytes.
nb::str decoded(const std::string &text) {
  return nb::steal<nb::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

void translate(const std::exception_ptr &pointer, void *) {
  try {
    std::rethrow_exception(pointer);
  } catch (const DeviceError &error) {
    try {
      const nb::object type = nb::module_::import_("dpuemu.errors").attr(error.name);
      PyErr_SetObject(type.ptr(), decoded(error.what()).ptr());
    } catch (nb::python_error &raised) {  // Ctrl-C while Python imports the module
      raised.restore();
    }
  }
}

void check(dpu_error_t error, const std::string &doing, const char *python_name = kError) {
  if (error != DPU_OK) throw DeviceError(doing + ": " + dpu_error_to_string(error), python_name);
}

std::vector<std::string> chips() {
#define DPUEMU_CHIP_NAME(name, ...) #name,
  return {PE_CHIP_TABLE(DPUEMU_CHIP_NAME)};
#undef DPUEMU_CHIP_NAME
}

nb::dict get_machine() {
  dpuemu_machine_t machine;
  check(dpuemu_get_machine(&machine), "reading the emulated machine", kArgumentError);
  nb::dict dict;
#define DPUEMU_FIELD(name, value) dict[#name] = value;
  DPUEMU_FIELD(ranks, machine.ranks)
  DPUEMU_FIELD(channels, machine.channels)
  DPUEMU_FIELD(ranks_per_channel, machine.ranks_per_channel)
  DPUEMU_FIELD(threads, machine.threads)
  DPUEMU_FIELD(hugepages, machine.hugepages == 1)
  DPUEMU_FIELD(flush, machine.flush)
  DPUEMU_FIELD(strict, machine.strict == 1)
  DPUEMU_FIELD(patience_seconds, machine.patience_seconds)
  DPUEMU_FIELD(chip, machine.chip)
#undef DPUEMU_FIELD
  return dict;
}

std::string chip_name() {
  dpuemu_machine_t machine;
  check(dpuemu_get_machine(&machine), "reading the emulated machine", kArgumentError);
  return dpuemu_chip_name();
}

/// fields: the fields of dpuemu_machine_t, in order.
void configure(const std::array<uint32_t, 9> &fields, const std::vector<uint32_t> &disabled) {
  const auto [ranks, channels, ranks_per_channel, threads, hugepages, flush, strict, patience,
              chip] = fields;
  const dpuemu_machine_t machine = {ranks,
                                    channels,
                                    ranks_per_channel,
                                    threads,
                                    static_cast<int>(hugepages),
                                    static_cast<int>(flush),
                                    static_cast<int>(strict),
                                    patience,
                                    static_cast<int>(chip)};
  const dpu_error_t error = dpuemu_configure(&machine, disabled.empty() ? nullptr : disabled.data(),
                                             static_cast<uint32_t>(disabled.size()));
  if (error == DPU_ERR_ALLOCATION)
    throw DeviceError(
        "configuring the emulated machine: a rank is allocated; free every PE set first", kError);
  check(error, "configuring the emulated machine", kArgumentError);
}

uint64_t resident_bytes() {
  uint64_t bytes = 0;
  check(dpuemu_resident_bytes(&bytes), "counting resident bytes");
  return bytes;
}

struct dpu_set_t set_of(const nb::bytes &bytes) {
  struct dpu_set_t set;
  if (bytes.size() != sizeof set)
    throw DeviceError("a PE set is a struct dpu_set_t of " + std::to_string(sizeof set) +
                          " bytes, not " + std::to_string(bytes.size()),
                      kArgumentError);
  std::memcpy(&set, bytes.c_str(), sizeof set);
  return set;
}

nb::dict report(const nb::bytes &set) {
  dpuemu_report_t report = {};
  const dpu_error_t error = dpuemu_get_report(set_of(set), &report);
  if (error == DPU_ERR_NO_PROGRAM_LOADED)
    throw DeviceError("no program has been launched on these PEs", kError);
  check(error, "reading the report of a launch");
  nb::dict dict;
#define DPUEMU_FIELD(name) dict[#name] = report.name;
  DPUEMU_FIELD(pes)
  DPUEMU_FIELD(faulted_pes)
  DPUEMU_FIELD(dma_reads)
  DPUEMU_FIELD(dma_read_bytes)
  DPUEMU_FIELD(dma_writes)
  DPUEMU_FIELD(dma_write_bytes)
  DPUEMU_FIELD(masked_addresses)
  DPUEMU_FIELD(masked_sizes)
  DPUEMU_FIELD(direct_pages)
  DPUEMU_FIELD(waiting_tasklets)
  DPUEMU_FIELD(instructions)
  DPUEMU_FIELD(cycles_max)
  DPUEMU_FIELD(cycles_sum)
  DPUEMU_FIELD(cycles_per_second)
  DPUEMU_FIELD(host_seconds)
#undef DPUEMU_FIELD
  return dict;
}

void stop(const nb::bytes &set) { check(dpuemu_stop(set_of(set)), "stopping PEs"); }

/// function: the only one, or empty.
nb::str disassemble(const nb::bytes &path, const nb::bytes &function) {
  std::string text;
  const auto append = [](const char *line, void *to) {
    *static_cast<std::string *>(to) += std::string(line) + '\n';
  };
  check(dpuemu_disassemble(path.c_str(), function.size() == 0 ? nullptr : function.c_str(), append,
                           &text),
        "disassembling a program");
  return decoded(text);
}

nb::str explain_fault(const nb::bytes &set) {
  char sentence[DPUEMU_FAULT_BYTES];
  check(dpuemu_get_fault(set_of(set), sentence, sizeof sentence), "reading a fault");
  return decoded(sentence);
}

}  // namespace

NB_MODULE(_dpuemu, m) {
  nb::set_leak_warnings(false);
  nb::register_exception_translator(translate);

  m.attr("VERSION") = DPUEMU_VERSION;
  m.attr("MRAM_BYTES") = DPUEMU_MRAM_BYTES;
  m.attr("PES_PER_RANK") = DPUEMU_DPUS_PER_RANK;
  m.attr("MAX_RANKS") = DPUEMU_MAX_RANKS;
  m.def("chips", chips);
  m.def("chip_name", chip_name);
  m.def("get_machine", get_machine);
  m.def("configure", configure, "fields"_a, "disabled"_a);
  m.def(
      "set_transfer",
      [](uint32_t threads, int flush) {
        check(dpuemu_set_transfer(threads, flush),
              "changing the transfer settings of the emulated machine", kArgumentError);
      },
      "threads"_a, "flush"_a);
  m.def("resident_bytes", resident_bytes);
  m.def("report", report, "dpu_set"_a);
  m.def("stop", stop, "dpu_set"_a);
  m.def("explain_fault", explain_fault, "dpu_set"_a);
  m.def("disassemble", disassemble, "path"_a, "function"_a);
}
