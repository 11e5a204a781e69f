// The inner loops of a transfer: words of the DPUs of two neighbouring banks on one side, lines of the region on the other.
//
// Each instruction set is one table row with the same loops in its own file, so that no instruction leaves the file it was compiled for.
#pragma once

#include <cstdint>

namespace dpuemu {

/// Consecutive words of the banks d and d+4 within one run (8 KiB of MRAM, hence lines at stride 128 without a gap).
struct RunSlice {
  uint8_t *lines;       // line of the first word of bank d; that of bank d+4 is 64 bytes further
  uint8_t *host[2][8];  // per bank of the pair and chip: the first word on the host's side; every pointer valid if lanes[bank] != 0
  uint8_t lanes[2];     // bit c is set if chip c takes part; 0: the bank does not
  uint32_t words;       // at most 1024
};

struct LineKernels {
  const char *isa;
  uint32_t words_per_step;  // `words` of a slice must be a multiple
  /// Region <- host: byte 8r+c of each line <- byte r of chip c's word. Bytes of chips that take no part keep their value.
  void (*write)(const RunSlice &slice);
  /// Region <- host, the same word for every chip: host[0][0] is the source of both banks.
  void (*broadcast)(const RunSlice &slice);
  /// Host <- region: every pointer is written, so lanes that take no part need a place to waste. stream: bypass the caches; then every
  /// pointer must be a multiple of 64.
  void (*read)(const RunSlice &slice, bool stream);

  // What a PE's own DMA moves: `words` words of one chip, within one run.
  /// to <- region.
  void (*read_lane)(const uint8_t *lines, uint32_t chip, uint32_t words, uint8_t *to);
  /// Region <- from. Bytes of other chips are not even written, so that their PEs may run at the same time.
  void (*write_lane)(uint8_t *lines, uint32_t chip, uint32_t words, const uint8_t *from);
};

/// The portable form of the last two.
void portable_read_lane(const uint8_t *lines, uint32_t chip, uint32_t words, uint8_t *to);
void portable_write_lane(uint8_t *lines, uint32_t chip, uint32_t words, const uint8_t *from);

/// The instruction sets of this build, best first; the last one is portable and works everywhere.
extern const LineKernels kAvx512VbmiKernels;
extern const LineKernels kAvx512BwKernels;
extern const LineKernels kAvx2Kernels;
extern const LineKernels kPortableKernels;

/// The best row that this machine can execute; DPUEMU_ISA=avx512vbmi|avx512bw|avx2|portable picks another one if it can.
const LineKernels &line_kernels();

/// The row of that name if this build has it and this machine can execute it, else nullptr.
const LineKernels *line_kernels_by_name(const char *isa);

/// Makes the stores of the kernels visible to everything that follows (they may bypass the caches).
void fence_stores();

/// Drops the lines of `words` words of both banks from the caches, with a fence on either side, so that the next load sees memory.
void flush_lines(const uint8_t *lines, uint32_t words);

}  // namespace dpuemu
