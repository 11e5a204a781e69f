#include "base/report_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/json.h"

namespace dpuemu {

namespace {

/// Appends a line to the file that an environment variable names, if any. Errors have no effect.
void append_to_named(const char *variable, const char *line, int bytes) {
  const char *path = std::getenv(variable);
  if (path != nullptr && *path != '\0') append_line(path, line, static_cast<size_t>(bytes));
}

}  // namespace

bool append_line(const char *path, const char *line, size_t bytes) {
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return false;
  const bool is_written = write(file, line, bytes) >= 0;
  const int error = errno;
  close(file);
  errno = error;
  return is_written;
}

uint64_t note_start(uint64_t pes) {
  static std::atomic<uint32_t> launches{0};
  const uint64_t key = static_cast<uint64_t>(getpid()) << 32 | ++launches;
  char line[64];
  const int bytes =
      std::snprintf(line, sizeof line, "%llu %llu\n", static_cast<unsigned long long>(key),
                    static_cast<unsigned long long>(pes));
  append_to_named("DPUEMU_RUNNING", line, bytes);
  return key;
}

void note_end(uint64_t key) {
  char line[32];
  append_to_named("DPUEMU_RUNNING", line,
                  std::snprintf(line, sizeof line, "%llu\n", static_cast<unsigned long long>(key)));
}

void append_to_report_file(const dpuemu_report_t &report, const char *fault) {
  // A thread that runs PEs must not fail here, so the line has a fixed buffer.
  char line[1024 + 6 * DPUEMU_FAULT_BYTES];
  int size = 0;
  const auto put = [&](char character) {
    if (static_cast<size_t>(size) < sizeof line) line[size++] = character;
  };
  const auto name = [&](const char *field) {
    put(size == 0 ? '{' : ',');
    if (size > 1) put(' ');
    put_quoted(field, put);
    put(':');
    put(' ');
  };
  const auto add = [&](const char *field, double value) {
    name(field);
    put_number(value, put);
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
  DPUEMU_ADD(direct_pages);
  DPUEMU_ADD(waiting_tasklets);
  DPUEMU_ADD(instructions);
  DPUEMU_ADD(cycles_max);
  DPUEMU_ADD(cycles_sum);
  DPUEMU_ADD(cycles_per_second);
  DPUEMU_ADD(host_seconds);
#undef DPUEMU_ADD
  name("fault");
  put_quoted(fault, put);
  put('}');
  put('\n');
  append_to_named("DPUEMU_REPORT", line, size);
}

}  // namespace dpuemu
