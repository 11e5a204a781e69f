// The line kernels of every instruction set equal the definition per byte.
#include <cstdlib>
#include <memory>

#include "base/address_map.h"
#include "base/line_kernels.h"
#include "machine_fixture.h"

using namespace dpuemu;

namespace {

constexpr uint32_t kWords = 48;
constexpr const char *kIsas[] = {"avx512vbmi", "avx512bw", "avx2", "portable"};

struct Buffers {
  Buffers()
      : memory(static_cast<uint8_t *>(std::aligned_alloc(64, kLineStride * kWords)), std::free),
        lines(memory.get()) {
    for (uint64_t i = 0; i < kLineStride * kWords; ++i) lines[i] = fixture::noise(1, i);
    for (uint32_t i = 0; i < 16; ++i) host[i] = fixture::noise_bytes(2 + i, kWordBytes * kWords);
  }
  RunSlice slice(uint8_t lanes0, uint8_t lanes1) {
    RunSlice out = {lines, {}, {lanes0, lanes1}, kWords};
    for (uint32_t i = 0; i < 16; ++i) out.host[i / 8][i % 8] = host[i].data();
    return out;
  }
  std::unique_ptr<uint8_t, void (*)(void *)> memory;
  uint8_t *lines;
  std::vector<uint8_t> host[16];
};

template <class Check>
void for_every_isa_and_some_lanes(Check check) {
  uint32_t tested = 0;
  for (const char *isa : kIsas) {
    const LineKernels *kernels = line_kernels_by_name(isa);
    if (kernels == nullptr) continue;
    CHECK_EQ(std::string(kernels->isa), isa);
    ++tested;
    for (const auto &[lanes0, lanes1] : {std::pair<int, int>{0xFF, 0xFF},
                                         {0xFF, 0},
                                         {0, 0xFF},
                                         {0x01, 0x80},
                                         {0xA5, 0},
                                         {0x7E, 0xFF}})
      check(*kernels, static_cast<uint8_t>(lanes0), static_cast<uint8_t>(lanes1));
  }
  CHECK(tested >= 1);
}

uint64_t place_in_lines(uint32_t bank, uint32_t chip, uint64_t byte) {
  return kLineStride * (byte / 8) + kLineBytes * bank + 8 * (byte % 8) + chip;
}

void check_written(const Buffers &buffers, const std::vector<uint8_t> &before, uint8_t lanes0,
                   uint8_t lanes1, bool is_broadcast) {
  for (uint32_t bank = 0; bank < 2; ++bank)
    for (uint32_t chip = 0; chip < 8; ++chip)
      for (uint64_t byte = 0; byte < kWordBytes * kWords; ++byte) {
        const uint64_t at = place_in_lines(bank, chip, byte);
        const bool takes_part = (bank ? lanes1 : lanes0) >> chip & 1;
        const uint8_t sent = buffers.host[is_broadcast ? 0 : bank * 8 + chip][byte];
        CHECK_EQ(int{buffers.lines[at]}, int{takes_part ? sent : before[at]});
      }
}

}  // namespace

TEST(Kernels_WriteExactlyTheBytesOfTheLanesThatTakePart) {
  for_every_isa_and_some_lanes([](const LineKernels &kernels, uint8_t lanes0, uint8_t lanes1) {
    Buffers buffers;
    const std::vector<uint8_t> before(buffers.lines, buffers.lines + kLineStride * kWords);
    kernels.write(buffers.slice(lanes0, lanes1));
    fence_stores();
    check_written(buffers, before, lanes0, lanes1, false);
  });
}

TEST(Kernels_BroadcastOneSourceToTheLanesThatTakePart) {
  for_every_isa_and_some_lanes([](const LineKernels &kernels, uint8_t lanes0, uint8_t lanes1) {
    Buffers buffers;
    const std::vector<uint8_t> before(buffers.lines, buffers.lines + kLineStride * kWords);
    kernels.broadcast(buffers.slice(lanes0, lanes1));
    fence_stores();
    check_written(buffers, before, lanes0, lanes1, true);
  });
}

TEST(Kernels_ReadEveryLaneOfTheBanksThatTakePart) {
  for_every_isa_and_some_lanes([](const LineKernels &kernels, uint8_t lanes0, uint8_t lanes1) {
    Buffers buffers;
    const std::vector<uint8_t> other_bank = buffers.host[lanes0 == 0 ? 0 : 8];
    kernels.read(buffers.slice(lanes0, lanes1), false);
    for (uint32_t bank = 0; bank < 2; ++bank)
      for (uint32_t chip = 0; chip < 8 && (bank ? lanes1 : lanes0) != 0; ++chip)
        for (uint64_t byte = 0; byte < kWordBytes * kWords; ++byte)
          CHECK_EQ(int{buffers.host[bank * 8 + chip][byte]},
                   int{buffers.lines[place_in_lines(bank, chip, byte)]});
    if (lanes0 == 0 || lanes1 == 0) CHECK(buffers.host[lanes0 == 0 ? 0 : 8] == other_bank);
  });
}

TEST(Kernels_ReadTheSameWhenStreamingPastTheCaches) {
  for (const char *isa : kIsas) {
    const LineKernels *kernels = line_kernels_by_name(isa);
    if (kernels == nullptr) continue;
    Buffers buffers;
    std::unique_ptr<uint8_t, void (*)(void *)> aligned(
        static_cast<uint8_t *>(std::aligned_alloc(64, 16 * kWordBytes * kWords)), std::free);
    RunSlice slice = buffers.slice(0xFF, 0xFF);
    for (uint32_t i = 0; i < 16; ++i)
      slice.host[i / 8][i % 8] = aligned.get() + i * kWordBytes * kWords;
    kernels->read(slice, true);
    fence_stores();
    for (uint32_t i = 0; i < 16; ++i)
      for (uint64_t byte = 0; byte < kWordBytes * kWords; ++byte)
        CHECK_EQ(int{aligned.get()[i * kWordBytes * kWords + byte]},
                 int{buffers.lines[place_in_lines(i / 8, i % 8, byte)]});
  }
}
