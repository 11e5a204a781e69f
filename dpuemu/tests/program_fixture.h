// Shared by the tests of PE programs: sets with a program, symbols by name, and results of a run.
#pragma once

#include <dpu_log.h>
#include <dpu_program.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

#include "machine_fixture.h"

namespace fixture {

/// A program of tests/programs, built beside the tests.
inline std::string program_path(const std::string &name) {
  return std::string(DPUEMU_TEST_PROGRAMS) + "/" + name;
}

inline std::vector<uint8_t> program_bytes(const std::string &name) {
  std::ifstream file(program_path(name), std::ios::binary);
  CHECK(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A file in the folder of the programs, until the end of the test.
class TemporaryFile {
 public:
  TemporaryFile(const std::string &name, const std::vector<uint8_t> &bytes)
      : path(program_path(name)) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  ~TemporaryFile() { std::remove(path.c_str()); }
  const std::string path;
};

/// A machine for PE programs. strict: 1 on, 2 off.
inline void pe_machine(uint32_t ranks, int strict = 2, uint32_t threads = 2,
                       uint32_t patience_seconds = 60, int chip = DPUEMU_CHIP_GENERIC) {
  dpuemu_machine_t wanted = {};
  wanted.ranks = ranks;
  wanted.threads = threads;
  wanted.hugepages = 2;
  wanted.flush = 2;
  wanted.strict = strict;
  wanted.patience_seconds = patience_seconds;
  wanted.chip = chip;
  CHECK_OK(dpuemu_configure(&wanted, nullptr, 0));
}

constexpr int kStrict = 1, kLenient = 2;  // of pe_machine

inline void load(dpu_set_t set, const std::string &name) {
  CHECK_OK(dpu_load(set, program_path(name).c_str(), nullptr));
}

inline void launch(dpu_set_t set) { CHECK_OK(dpu_launch(set, DPU_SYNCHRONOUS)); }

template <class T>
void put(dpu_set_t set, const char *symbol, const T &value, uint32_t offset = 0) {
  CHECK_OK(dpu_copy_to(set, symbol, offset, &value, sizeof value));
}

template <class T>
T get(dpu_set_t dpu, const char *symbol, uint32_t offset = 0) {
  T value;
  CHECK_OK(dpu_copy_from(dpu, symbol, offset, &value, sizeof value));
  return value;
}

/// Read and write a value in MRAM, which the host reaches in words of 8 bytes.
template <class T>
T get_mram(dpu_set_t dpu, const char *symbol, uint32_t offset) {
  const auto word = get<std::array<uint8_t, 8>>(dpu, symbol, offset / 8 * 8);
  T value;
  std::memcpy(&value, &word[offset % 8], sizeof value);
  return value;
}

template <class T>
void put_mram(dpu_set_t dpu, const char *symbol, const T &value, uint32_t offset) {
  auto word = get<std::array<uint8_t, 8>>(dpu, symbol, offset / 8 * 8);
  std::memcpy(&word[offset % 8], &value, sizeof value);
  put(dpu, symbol, word, offset / 8 * 8);
}

inline uint32_t number(dpu_set_t dpu, const char *symbol, uint32_t index = 0) {
  return get<uint32_t>(dpu, symbol, 4 * index);
}

inline std::vector<uint8_t> heap_bytes(dpu_set_t dpu, uint32_t offset, size_t count) {
  std::vector<uint8_t> bytes(count);
  CHECK_OK(dpu_copy_from(dpu, kHeap, offset, bytes.data(), count));
  return bytes;
}

inline std::string fault_of(dpu_set_t set) {
  char text[4096];
  CHECK_OK(dpuemu_get_fault(set, text, sizeof text));
  return text;
}

/// The beginning of every sentence about a fault of this PE.
inline std::string fault_prefix(dpu_set_t dpu, uint32_t tasklet) {
  dpu_t *const pe = dpu_from_set(dpu);
  return "rank " + std::to_string(dpu_get_rank_id(dpu_get_rank(pe))) + ", chip " +
         std::to_string(dpu_get_slice_id(pe)) + ", bank " + std::to_string(dpu_get_member_id(pe)) +
         ", tasklet " + std::to_string(tasklet) + ": ";
}

inline dpuemu_report_t report_of(dpu_set_t set) {
  dpuemu_report_t report;
  CHECK_OK(dpuemu_get_report(set, &report));
  return report;
}

/// All fields of a report that do not depend on the host's speed.
inline std::string modelled(const dpuemu_report_t &r) {
  char text[512];
  std::snprintf(text, sizeof text, "%llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %.17g %.17g",
                (unsigned long long)r.pes, (unsigned long long)r.faulted_pes,
                (unsigned long long)r.dma_reads, (unsigned long long)r.dma_read_bytes,
                (unsigned long long)r.dma_writes, (unsigned long long)r.dma_write_bytes,
                (unsigned long long)r.masked_addresses, (unsigned long long)r.masked_sizes,
                (unsigned long long)r.direct_pages, (unsigned long long)r.instructions,
                r.cycles_max, r.cycles_sum);
  return text;
}

/// The log of a DPU.
inline std::string log_of(dpu_set_t dpu) {
  char *text = nullptr;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  CHECK(stream != nullptr);
  const dpu_error_t status = dpu_log_read(dpu, stream);
  std::fclose(stream);
  const std::string out(text, size);
  std::free(text);
  CHECK_OK(status);
  return out;
}

/// A set with a program in all DPUs.
class Loaded : public Set {
 public:
  Loaded(uint32_t dpus, const std::string &name) : Set(dpus) {
    load(set, name);
    all = Set::dpus();
  }
  std::vector<dpu_set_t> all;
};

/// Fails if a check of the program failed, or if it made no check. For programs with expect.h.
inline void check_expectations(dpu_set_t dpu, const std::string &name, const char *file, int line) {
  const uint32_t failed = number(dpu, "failed_line");
  if (failed != 0)
    harness::fail(file, line,
                  "programs/" + name + ".c:" + std::to_string(failed) + " does not hold");
  if (number(dpu, "checks") == 0)
    harness::fail(file, line, "programs/" + name + ".c checked nothing");
}

/// Runs one topic of a program with expect.h on one DPU and verifies its checks.
#define CHECK_PROGRAM(dpu, name, topic)                         \
  do {                                                          \
    fixture::put<uint32_t>(dpu, "topic", topic);                \
    fixture::launch(dpu);                                       \
    fixture::check_expectations(dpu, name, __FILE__, __LINE__); \
  } while (0)

}  // namespace fixture
