// DMA with addresses and sizes that the hardware masks silently and strict mode refuses.
#include <algorithm>
#include <memory>

#include "program_fixture.h"

using namespace fixture;

namespace {

constexpr uint32_t kMram = 0x08000000, kBankBytes = 64 << 20;

struct DmaCall {
  uint32_t is_write, mram, wram, bytes;
};

/// One DPU that makes DMA calls. MRAM holds noise(1, position) in the first 8 KiB, the buffer in
/// WRAM noise(2, position).
class Dma {
 public:
  explicit Dma(int strict) {
    pe_machine(1, strict);
    set = std::make_unique<Loaded>(1, "dma");
    mram = noise_bytes(1, 8192);
    wram = noise_bytes(2, 8192);
    CHECK_OK(dpu_copy_to(dpu(), kHeap, 0, mram.data(), mram.size()));
    CHECK_OK(dpu_copy_to(dpu(), "buffer", 0, wram.data(), wram.size()));
  }
  dpu_set_t dpu() const { return set->all[0]; }
  dpu_error_t run(const std::vector<DmaCall> &calls) {
    CHECK_OK(dpu_copy_to(dpu(), "calls", 0, calls.data(), calls.size() * sizeof(DmaCall)));
    put<uint32_t>(dpu(), "count", static_cast<uint32_t>(calls.size()));
    return dpu_launch(dpu(), DPU_SYNCHRONOUS);
  }
  std::vector<uint8_t> buffer() const {
    std::vector<uint8_t> bytes(8192);
    CHECK_OK(dpu_copy_from(dpu(), "buffer", 0, bytes.data(), bytes.size()));
    return bytes;
  }
  /// The expected buffer after a DMA of `bytes` bytes of MRAM to the offset.
  std::vector<uint8_t> buffer_with(uint32_t offset, uint32_t mram_offset, uint32_t bytes) const {
    std::vector<uint8_t> want = wram;
    std::copy_n(mram.begin() + mram_offset, bytes, want.begin() + offset);
    return want;
  }
  std::vector<uint8_t> mram_with(uint32_t offset, uint32_t wram_offset, uint32_t bytes) const {
    std::vector<uint8_t> want = mram;
    std::copy_n(wram.begin() + wram_offset, bytes, want.begin() + offset);
    return want;
  }

  std::unique_ptr<Loaded> set;
  std::vector<uint8_t> mram, wram;
};

/// Checks that in strict mode the call is a fault of tasklet 0, its sentence contains `word`, no
/// byte moves, and no DMA is counted.
void check_strict_fault(const DmaCall &call, const std::string &word) {
  Dma dma(kStrict);
  CHECK_STATUS(dma.run({call}), DPU_ERR_DPU_FAULT);
  const std::string sentence = fault_of(dma.dpu());
  CHECK_EQ(sentence.substr(0, fault_prefix(dma.dpu(), 0).size()), fault_prefix(dma.dpu(), 0));
  if (sentence.find(word) == std::string::npos)
    harness::fail(__FILE__, __LINE__, sentence + " does not say " + word);
  CHECK(dma.buffer() == dma.wram);
  CHECK(heap_bytes(dma.dpu(), 0, 8192) == dma.mram);
  CHECK_EQ(number(dma.dpu(), "ended"), 0u);
  const dpuemu_report_t report = report_of(dma.dpu());
  CHECK_EQ(report.faulted_pes, 1u);
  CHECK_EQ(report.dma_reads + report.dma_writes, 0u);
}

}  // namespace

TEST(Dma_DropsTheLowThreeBitsOfAnMramAddress) {
  {
    Dma dma(kLenient);
    CHECK_OK(dma.run({{0, kMram + 107, 16, 24}}));
    CHECK(dma.buffer() == dma.buffer_with(16, 104, 24));
    const dpuemu_report_t report = report_of(dma.dpu());
    CHECK_EQ(report.masked_addresses, 1u);
    CHECK_EQ(report.masked_sizes, 0u);
    CHECK_EQ(report.dma_reads, 1u);
    CHECK_EQ(report.dma_read_bytes, 24u);
  }
  {
    Dma dma(kLenient);
    CHECK_OK(dma.run({{1, kMram + 111, 16, 8}}));
    CHECK(heap_bytes(dma.dpu(), 0, 8192) == dma.mram_with(104, 16, 8));
  }
  check_strict_fault({0, kMram + 107, 16, 24}, "multiple of 8");
  check_strict_fault({1, kMram + 1, 16, 8}, "multiple of 8");
}

TEST(Dma_DropsTheLowThreeBitsOfAWramAddress) {
  {
    Dma dma(kLenient);
    CHECK_OK(dma.run({{0, kMram + 64, 21, 16}}));
    CHECK(dma.buffer() == dma.buffer_with(16, 64, 16));
    CHECK_EQ(report_of(dma.dpu()).masked_addresses, 1u);
  }
  {
    Dma dma(kLenient);
    CHECK_OK(dma.run({{1, kMram + 7, 47, 16}}));
    CHECK(heap_bytes(dma.dpu(), 0, 8192) == dma.mram_with(0, 40, 16));
    CHECK_EQ(report_of(dma.dpu()).masked_addresses, 2u);
  }
  check_strict_fault({0, kMram + 64, 21, 16}, "multiple of 8");
  check_strict_fault({1, kMram + 64, 4, 16}, "multiple of 8");
}

TEST(Dma_KeepsEightBitsOfTheNumberOfWords) {
  const struct {
    uint32_t asked, moved;
  } sizes[] = {{0, 2048}, {7, 2048},  {12, 8},      {15, 8},     {2047, 2040},
               {2056, 8}, {2064, 16}, {4096, 2048}, {4100, 2048}};
  for (const auto &size : sizes) {
    for (uint32_t is_write : {0u, 1u}) {
      Dma dma(kLenient);
      CHECK_OK(dma.run({{is_write, kMram + 8, 512, size.asked}}));
      CHECK(dma.buffer() == (is_write ? dma.wram : dma.buffer_with(512, 8, size.moved)));
      CHECK(heap_bytes(dma.dpu(), 0, 8192) ==
            (is_write ? dma.mram_with(8, 512, size.moved) : dma.mram));
      const dpuemu_report_t report = report_of(dma.dpu());
      CHECK_EQ(report.masked_sizes, 1u);
      CHECK_EQ(is_write ? report.dma_write_bytes : report.dma_read_bytes, size.moved);
    }
  }
  for (uint32_t bytes : {0u, 12u, 2056u, 4096u}) {
    check_strict_fault({0, kMram, 0, bytes}, "size");
    check_strict_fault({1, kMram, 0, bytes}, "size");
  }
}

TEST(Dma_OfValidAddressesAndSizesIsCountedAndNoFaultInStrictMode) {
  Dma dma(kStrict);
  CHECK_OK(dma.run({{0, kMram + 1024, 0, 2048},
                    {1, kMram + 4096, 0, 8},
                    {0, kMram + kBankBytes - 8, 4096, 8},
                    {1, kMram + kBankBytes - 2048, 8, 2048}}));
  CHECK_EQ(number(dma.dpu(), "ended"), 1u);
  const dpuemu_report_t report = report_of(dma.dpu());
  CHECK_EQ(report.dma_reads, 2u);
  CHECK_EQ(report.dma_read_bytes, 2056u);
  CHECK_EQ(report.dma_writes, 2u);
  CHECK_EQ(report.dma_write_bytes, 2056u);
  CHECK_EQ(report.masked_addresses + report.masked_sizes, 0u);
  CHECK(heap_bytes(dma.dpu(), 4096, 8) ==
        std::vector<uint8_t>(dma.mram.begin() + 1024, dma.mram.begin() + 1032));
}

TEST(Dma_OutsideMramIsAFaultInBothModes) {
  constexpr uint32_t kEnd = kMram + kBankBytes;
  const struct {
    uint32_t mram, bytes;
    const char *rule;
  } calls[] = {{kBankBytes, 16, ": outside MRAM"},
               {kMram - 8, 16, ": outside MRAM"},
               {kEnd, 16, ": outside MRAM"},
               {0xFFFFFFF8u, 16, ": outside MRAM"},
               {kEnd - 8, 16, ": beyond the end"},
               {kEnd - 2040, 2048, ": beyond the end"},
               {kBankBytes - 16, 24, ": beyond the end"}};
  for (int strict : {kLenient, kStrict})
    for (uint32_t is_write : {0u, 1u})
      for (const auto &call : calls) {
        Dma dma(strict);
        CHECK_STATUS(dma.run({{is_write, call.mram, 0, call.bytes}}), DPU_ERR_DPU_FAULT);
        CHECK(fault_of(dma.dpu()).find(call.rule) != std::string::npos);
        CHECK(heap_bytes(dma.dpu(), 0, 8192) == dma.mram);
        CHECK(dma.buffer() == dma.wram);
      }
}

TEST(Dma_AcceptsAnOffsetAsMramAddress) {
  for (int strict : {kLenient, kStrict}) {
    Dma dma(strict);
    CHECK_OK(dma.run({{0, 4096, 0, 16}}));
    CHECK(dma.buffer() == dma.buffer_with(0, 4096, 16));
  }
}

TEST(Dma_EndsWithTheWramOfTheChip) {
  for (int chip : {DPUEMU_CHIP_V1A, DPUEMU_CHIP_V1B}) {
    pe_machine(1, kLenient, 1, 60, chip);
    Loaded set(1, "dma_v1B");
    const uint32_t read_of_16[] = {0, 64, 0, 16};
    put(set.all[0], "calls", read_of_16);
    put<uint32_t>(set.all[0], "count", 1);
    put<uint32_t>(set.all[0], "moves_beyond", 65536 - 16);  // from the end of v1B's WRAM
    launch(set.set);
    put<uint32_t>(set.all[0], "moves_beyond", 65536 - 8);
    CHECK_STATUS(dpu_launch(set.set, DPU_SYNCHRONOUS),
                 chip == DPUEMU_CHIP_V1A ? DPU_OK : DPU_ERR_DPU_FAULT);
    if (chip == DPUEMU_CHIP_V1B)
      CHECK(fault_of(set.set).find("reaches WRAM address 0xf807, beyond the end") !=
            std::string::npos);
  }
}

TEST(Dma_OutsideWramIsAFaultInBothModes) {
  for (int strict : {kLenient, kStrict})
    for (uint32_t address : {65536u - 8, 65536u + 256, 1u << 20}) {
      Dma dma(strict);
      put<uint32_t>(dma.dpu(), "moves_beyond", address);
      CHECK_STATUS(dma.run({{1, kMram, 0, 16}}), DPU_ERR_DPU_FAULT);
      const std::string sentence = fault_of(dma.dpu());
      CHECK_EQ(sentence.substr(0, fault_prefix(dma.dpu(), 0).size()), fault_prefix(dma.dpu(), 0));
      CHECK(sentence.find("mram_write") != std::string::npos);
      CHECK(heap_bytes(dma.dpu(), 0, 8192) == dma.mram);
    }
}
