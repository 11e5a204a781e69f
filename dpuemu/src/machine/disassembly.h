// The machine code of a program for real DPUs as text.
#pragma once

#include <dpu_error.h>

#include <functional>
#include <string>
#include <string_view>

namespace dpuemu {

/// Calls `print` for each line of the text: names of functions and labels, source lines (if the
/// program has debug information), and instructions with their addresses. function: the only one
/// to print, or "". Errors, with an explanation: those of read_program_file and Program::parse,
/// DPU_ERR_ELF_INVALID_FILE if the file has no machine code of a DPU, DPU_ERR_UNKNOWN_SYMBOL.
dpu_error_t disassemble(const std::string &path, std::string_view function,
                        const std::function<void(const std::string &line)> &print);

}  // namespace dpuemu
