#include "report_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace dpuemu {

void append_to_report_file(const dpuemu_report_t &report, const char *fault) {
  const char *path = std::getenv("DPUEMU_REPORT");
  if (path == nullptr || *path == '\0') return;
  // A thread that runs PEs must not fail here, so the line has a fixed buffer.
  char line[8192];
  int size = 0;
  const auto add = [&](const char *name, double value) {
    size += std::snprintf(line + size, sizeof line - static_cast<size_t>(size), "%s\"%s\": %.17g", size == 0 ? "{" : ", ", name, value);
  };
#define DPUEMU_ADD(field) add(#field, static_cast<double>(report.field))
  DPUEMU_ADD(pes);
  DPUEMU_ADD(faulted_pes);
  DPUEMU_ADD(dma_reads);
  DPUEMU_ADD(dma_read_bytes);
  DPUEMU_ADD(dma_writes);
  DPUEMU_ADD(dma_write_bytes);
  DPUEMU_ADD(masked_addresses);
  DPUEMU_ADD(masked_sizes);
  DPUEMU_ADD(wrapped_addresses);
  DPUEMU_ADD(direct_pages);
  DPUEMU_ADD(waiting_tasklets);
  DPUEMU_ADD(instructions);
  DPUEMU_ADD(cycles_max);
  DPUEMU_ADD(cycles_sum);
  DPUEMU_ADD(host_seconds);
#undef DPUEMU_ADD
  size += std::snprintf(line + size, sizeof line - static_cast<size_t>(size), ", \"fault\": \"");
  for (const char *next = fault; *next != '\0'; ++next) {
    const auto byte = static_cast<unsigned char>(*next);
    const char *const format = byte == '"' || byte == '\\' ? "\\%c" : byte < ' ' ? "\\u%04x" : "%c";
    size += std::snprintf(line + size, sizeof line - static_cast<size_t>(size), format, byte);
  }
  size += std::snprintf(line + size, sizeof line - static_cast<size_t>(size), "\"}\n");
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  // A single write keeps the lines of several processes apart.
  if (write(file, line, static_cast<size_t>(size)) < 0) size = 0;  // ignored
  close(file);
}

}  // namespace dpuemu
