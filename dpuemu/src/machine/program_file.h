// Reads program files.
#pragma once

#include <dpu_error.h>

#include <string>
#include <vector>

namespace dpuemu {

/// Replaces `bytes` by the bytes of the file. Errors, with an explanation (explanation.h):
/// DPU_ERR_ELF_NO_SUCH_FILE if the file cannot be opened, DPU_ERR_ELF_INVALID_FILE if the file is
/// not a regular file, is larger than 256 MiB, or cannot be read.
dpu_error_t read_program_file(const std::string &path, std::vector<char> &bytes);

}  // namespace dpuemu
