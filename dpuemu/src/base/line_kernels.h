// The inner loops of a transfer: these loops move words between host buffers and the lines of a
// region, for the DPUs of a bank pair.
//
// Each instruction set has a row of the table, and a source file with its loops. The build compiles
// only this source file for the instruction set.
#pragma once

#include <cstdint>

namespace dpuemu {

/// Consecutive words of the banks d and d+4 within one run (8 KiB of MRAM whose lines have stride
/// 128 without gaps).
struct RunSlice {
  uint8_t *lines;  // line of the first word of bank d; the line of bank d+4 starts 64 bytes after
                   // the line of bank d
  uint8_t *host[2][8];  // [bank of the pair][chip]: the first word in host memory; if lanes[bank]
                        // != 0, all 8 must be valid
  uint8_t lanes[2];     // bit c is set if chip c takes part; 0 if the bank does not take part
  uint32_t words;       // at most 1024
};

struct LineKernels {
  const char *isa;
  uint32_t words_per_step;  // RunSlice::words must be a multiple of this number
  /// Region <- host: byte 8r+c of each line <- byte r of chip c's word. Bytes of chips that do not
  /// take part keep their values.
  void (*write)(const RunSlice &slice);
  /// Region <- host. Every chip gets the same words; host[0][0] is the source for both banks.
  void (*broadcast)(const RunSlice &slice);
  /// Host <- region. read() writes through every pointer, so lanes that do not take part need a
  /// dummy buffer. stream: whether the stores bypass the caches; if true, all pointers must be
  /// multiples of 64.
  void (*read)(const RunSlice &slice, bool stream);

  // DMA of a PE: `words` words of one chip, within one run.
  /// to <- region.
  void (*read_lane)(const uint8_t *lines, uint32_t chip, uint32_t words, uint8_t *to);
  /// Region <- from. write_lane does not write the bytes of other chips, because the PEs of other
  /// chips may run at the same time.
  void (*write_lane)(uint8_t *lines, uint32_t chip, uint32_t words, const uint8_t *from);
};

/// Portable versions of LineKernels::read_lane and LineKernels::write_lane.
void portable_read_lane(const uint8_t *lines, uint32_t chip, uint32_t words, uint8_t *to);
void portable_write_lane(uint8_t *lines, uint32_t chip, uint32_t words, const uint8_t *from);

/// The rows of the instruction sets of this build, best instruction set first. The last row is
/// portable and works on every machine.
extern const LineKernels kAvx512VbmiKernels;
extern const LineKernels kAvx512BwKernels;
extern const LineKernels kAvx2Kernels;
extern const LineKernels kPortableKernels;

/// Returns the row that DPUEMU_ISA=avx512vbmi|avx512bw|avx2|portable names, else the best row that
/// this machine can execute.
const LineKernels &line_kernels();

/// Returns the row of instruction set `isa` if this build has the row and this machine can execute
/// it, else nullptr.
const LineKernels *line_kernels_by_name(const char *isa);
/// Returns row `index` of the rows that this machine can execute, best instruction set first. If
/// `index` is past the last row, returns nullptr.
const LineKernels *supported_line_kernels(uint32_t index);

/// Orders the stores of the kernels, which may bypass the caches, before all later stores.
void fence_stores();

/// Flushes the lines of `words` words of both banks of a bank pair from the caches, between two
/// fences, so that the next load reads memory.
void flush_lines(const uint8_t *lines, uint32_t words);

}  // namespace dpuemu
