#include "report_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace dpuemu {

void append_to_report_file(const dpuemu_report_t &report) {
  const char *path = std::getenv("DPUEMU_REPORT");
  if (path == nullptr || *path == '\0') return;
  std::string line;
  const auto add = [&line](const char *name, double value) {
    char text[80];
    std::snprintf(text, sizeof text, "%s\"%s\": %.17g", line.empty() ? "{" : ", ", name, value);
    line += text;
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
  DPUEMU_ADD(instructions);
  DPUEMU_ADD(cycles_max);
  DPUEMU_ADD(cycles_sum);
  DPUEMU_ADD(host_seconds);
#undef DPUEMU_ADD
  line += "}\n";
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  if (write(file, line.data(), line.size()) < 0) line.clear();  // a single write keeps the lines of several processes apart
  close(file);
}

}  // namespace dpuemu
