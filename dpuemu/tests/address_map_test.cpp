// The address map equals addresses that we derived by hand from its definition: MRAM bit -> region
// bit 3..12 -> 7..16, 13 -> 20, 14 -> 28, 15..21 -> 21..27, 22..25 -> 29..32; bank bits 1:0 ->
// 19:18, bank bit 2 -> 6; byte of the word -> 5:3; chip -> 2:0.
#include <dpuemu.h>

#include <algorithm>
#include <random>
#include <unordered_set>

#include "harness.h"

namespace {

struct Golden {
  uint32_t chip, bank;
  uint64_t mram_offset, region_offset;
};

constexpr Golden kGolden[] = {
    {0, 0, 0x0000000, 0x000000000},  // the first byte
    {1, 0, 0x0000000, 0x000000001},  // chips are adjacent
    {7, 0, 0x0000000, 0x000000007},
    {0, 0, 0x0000001, 0x000000008},  // bytes of a word are 8 apart
    {0, 0, 0x0000007, 0x000000038},
    {7, 0, 0x0000007, 0x00000003F},  // the end of the first line
    {0, 4, 0x0000000, 0x000000040},  // bank 4's line follows bank 0's
    {7, 4, 0x0000007, 0x00000007F},
    {0, 0, 0x0000008, 0x000000080},  // the next word is two lines later
    {5, 0, 0x000000B, 0x00000009D},
    {0, 1, 0x0000000, 0x000040000},  // banks 1, 2, 3 are 256 KiB apart
    {0, 2, 0x0000000, 0x000080000},
    {0, 3, 0x0000000, 0x0000C0000},
    {0, 5, 0x0000000, 0x000040040},
    {3, 7, 0x0000002, 0x0000C0053},
    {0, 0, 0x0001000, 0x000010000},  // bit 12
    {0, 0, 0x0001FF8, 0x00001FF80},  // the last word of the first run
    {0, 0, 0x0002000, 0x000100000},  // bit 13: the second run, 1 MiB later
    {0, 3, 0x0002000, 0x0001C0000},
    {0, 0, 0x0003FF8, 0x00011FF80},
    {0, 0, 0x0004000, 0x010000000},  // bit 14: 256 MiB later
    {0, 0, 0x0006000, 0x010100000},
    {2, 4, 0x0007FFF, 0x01011FFFA},
    {0, 0, 0x0008000, 0x000200000},  // bit 15: back in the lower half
    {0, 7, 0x0008000, 0x0002C0040},
    {0, 0, 0x000C000, 0x010200000},
    {0, 0, 0x0010000, 0x000400000},  // bit 16
    {0, 0, 0x0100000, 0x004000000},  // bit 20
    {0, 0, 0x0200000, 0x008000000},  // bit 21
    {0, 0, 0x03FFFF8, 0x01FF1FF80},  // the last word below bit 22
    {0, 0, 0x0400000, 0x020000000},  // bit 22
    {0, 0, 0x0800000, 0x040000000},
    {0, 0, 0x1000000, 0x080000000},
    {0, 0, 0x2000000, 0x100000000},  // bit 25: beyond 32 bits
    {0, 0, 0x3FFFFF8, 0x1FFF1FF80},
    {7, 7, 0x3FFFFFF, 0x1FFFDFFFF},  // the last byte: the line ends at 0x1FFFE0000
};

}  // namespace

TEST(AddressMap_EqualsTheAddressesDerivedByHand) {
  for (const Golden &golden : kGolden)
    CHECK_EQ(dpuemu_region_offset(golden.chip, golden.bank, golden.mram_offset),
             golden.region_offset);
}

TEST(AddressMap_RefusesChipsBanksAndOffsetsOutOfRange) {
  CHECK_EQ(dpuemu_region_offset(8, 0, 0), UINT64_MAX);
  CHECK_EQ(dpuemu_region_offset(0, 8, 0), UINT64_MAX);
  CHECK_EQ(dpuemu_region_offset(0, 0, DPUEMU_MRAM_BYTES), UINT64_MAX);
}

TEST(AddressMap_MapsEveryByteToADifferentPlaceOutsideTheControlInterface) {
  // A linear map over bits is injective if the images of the single bits are independent. Here each
  // bit of (chip, bank, offset) has one bit as its image, and no two share it.
  std::unordered_set<uint64_t> images;
  const auto image_of_bit = [](uint32_t bit) {
    return bit < 3   ? dpuemu_region_offset(1u << bit, 0, 0)
           : bit < 6 ? dpuemu_region_offset(0, 1u << (bit - 3), 0)
                     : dpuemu_region_offset(0, 0, UINT64_C(1) << (bit - 6));
  };
  for (uint32_t bit = 0; bit < 32; ++bit) {
    const uint64_t image = image_of_bit(bit);
    CHECK_EQ(image & (image - 1), 0u);
    CHECK(image != UINT64_C(1) << 17 && image < DPUEMU_REGION_BYTES);
    images.insert(image);
  }
  CHECK_EQ(images.size(), 32u);
  // The map is linear: the image of a random place is the sum of the images of its bits.
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const uint64_t place = random() & 0xFFFFFFFF;
    uint64_t sum = 0;
    for (uint32_t bit = 0; bit < 32; ++bit)
      if (place >> bit & 1) sum |= image_of_bit(bit);
    CHECK_EQ(dpuemu_region_offset(place & 7, place >> 3 & 7, place >> 6), sum);
  }
}
