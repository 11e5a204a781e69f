// Transfers: every byte at its place of the address map, no other byte changed, refused transfers
// without effect.
#include <dpu_memory.h>
#include <dpu_transfer_matrix.h>

#include <algorithm>
#include <utility>

#include "machine_fixture.h"

using namespace fixture;

extern "C" int sum_in_c(uint32_t nr_dpus);

namespace {

struct Range {
  uint64_t offset, length;
};

// Aligned and unaligned, one word and many, across borders of a run (8 KiB), of 16 KiB, 32 KiB and
// 4 MiB, up to the end of MRAM.
constexpr Range kRanges[] = {{0, 8},           {8, 64},          {0, 0},         {64, 4096},
                             {0x1FF8, 16},     {0x1FC0, 0x4080}, {0x7F00, 512},  {0x3FFFF8, 16},
                             {0x3FFFF80, 128}, {1, 1},           {3, 2},         {5, 11},
                             {7, 8194},        {0x1FFF, 2},      {0x3FFFFFB, 5}, {0x2468, 8192 + 8},
                             {0x10000, 20000}, {0x100, 7}};

/// The part of MRAM to which a transfer moves the first bytes of a buffer: whole words, as in the
/// SDK.
constexpr Range moved(const Range &range) { return {range.offset / 8 * 8, range.length / 8 * 8}; }

std::vector<std::vector<uint8_t>> payloads(size_t dpus, uint64_t bytes, uint64_t seed) {
  std::vector<std::vector<uint8_t>> all;
  for (size_t i = 0; i < dpus; ++i) all.push_back(noise_bytes(seed + i, bytes));
  return all;
}

/// Sends payload i to DPU i unless skip(i).
template <class Skip>
void send(Set &set, std::vector<std::vector<uint8_t>> &payload, const Range &range, Skip skip) {
  const auto dpus = set.dpus();
  for (size_t i = 0; i < dpus.size(); ++i)
    CHECK_OK(dpu_prepare_xfer(dpus[i], skip(i) ? nullptr : payload[i].data()));
  CHECK_OK(dpu_push_xfer(set.set, DPU_XFER_TO_DPU, kHeap, static_cast<uint32_t>(range.offset),
                         range.length, DPU_XFER_DEFAULT));
}

const auto kSkipNone = [](size_t) { return false; };

/// The bytes of a range and 16 more on either side, of all 64 DPUs of a rank, read by the address
/// map.
std::vector<uint8_t> surroundings(dpu_rank_t *rank, const Range &range) {
  RankAccess access(rank);
  const uint64_t begin = range.offset < 16 ? 0 : range.offset - 16;
  const uint64_t end = std::min<uint64_t>(range.offset + range.length + 16, DPUEMU_MRAM_BYTES);
  std::vector<uint8_t> bytes;
  for (uint32_t chip = 0; chip < 8; ++chip)
    for (uint32_t bank = 0; bank < 8; ++bank)
      for (uint64_t m = begin; m < end; ++m) bytes.push_back(access.byte(chip, bank, m));
  return bytes;
}

/// Fills the surroundings of a range in all 64 DPUs, enabled or not.
void fill(dpu_rank_t *rank, const Range &range) {
  RankAccess access(rank);
  const uint64_t begin = range.offset < 16 ? 0 : range.offset - 16;
  const uint64_t end = std::min<uint64_t>(range.offset + range.length + 16, DPUEMU_MRAM_BYTES);
  for (uint32_t chip = 0; chip < 8; ++chip)
    for (uint32_t bank = 0; bank < 8; ++bank)
      for (uint64_t m = begin; m < end; ++m)
        access.byte(chip, bank, m) = noise(99 + chip * 8 + bank, m);
}

/// Checks the surroundings: sent(chip, bank, i) inside moved(range) (negative: not written), the
/// bytes of fill() elsewhere.
template <class Sent>
void check_region(dpu_rank_t *rank, const Range &range, Sent sent) {
  RankAccess access(rank);
  const uint64_t begin = range.offset < 16 ? 0 : range.offset - 16;
  const uint64_t end = std::min<uint64_t>(range.offset + range.length + 16, DPUEMU_MRAM_BYTES);
  uint64_t wrong = 0;
  for (uint32_t chip = 0; chip < 8; ++chip)
    for (uint32_t bank = 0; bank < 8; ++bank)
      for (uint64_t m = begin; m < end; ++m) {
        const auto [first, bytes] = moved(range);
        const int value = m >= first && m < first + bytes ? sent(chip, bank, m - first) : -1;
        wrong +=
            access.byte(chip, bank, m) != (value >= 0 ? value : noise(99 + chip * 8 + bank, m));
      }
  CHECK_EQ(wrong, 0u);
}

/// Runs body for each flush setting.
template <class Body>
void with_every_flush(Body body) {
  for (int flush : {1, 2, 3}) body(flush);
}

}  // namespace

TEST(PushTo_WritesEveryByteAtItsPlaceOfTheMapAndNoOther) {
  with_every_flush([](int flush) {
    machine(2, {}, flush);
    Set set(128);
    for (const Range &range : kRanges) {
      auto payload = payloads(128, range.length, 7);
      for (uint32_t rank = 0; rank < 2; ++rank) fill(set.rank(rank), range);
      send(set, payload, range, kSkipNone);
      for (uint32_t rank = 0; rank < 2; ++rank)
        check_region(set.rank(rank), range, [&](uint32_t chip, uint32_t bank, uint64_t i) {
          return int{payload[rank * 64 + chip * 8 + bank][i]};
        });
    }
  });
}

TEST(PushTo_DoesNotChangeDisabledDpusAndDpusWithoutABuffer) {
  with_every_flush([](int flush) {
    machine(1, {place(0, 0, 0), place(0, 5, 4)}, flush);
    Set set(62);
    // Bank 7 and every third DPU take no part.
    const auto dpus = set.dpus();
    const auto skip = [&](size_t i) { return i % 3 == 0 || dpu_get_member_id(dpus[i].dpu) == 7; };
    int sender[8][8];  // by chip and bank: the DPU's place in `dpus` if it takes part, or -1
    for (auto &chip : sender) std::fill(std::begin(chip), std::end(chip), -1);
    for (size_t i = 0; i < dpus.size(); ++i)
      if (!skip(i))
        sender[dpu_get_slice_id(dpus[i].dpu)][dpu_get_member_id(dpus[i].dpu)] = static_cast<int>(i);
    for (const Range &range : kRanges) {
      auto payload = payloads(62, range.length, 7);
      fill(set.rank(0), range);
      send(set, payload, range, skip);
      check_region(set.rank(0), range, [&](uint32_t chip, uint32_t bank, uint64_t byte) {
        const int i = sender[chip][bank];
        return i < 0 ? -1 : int{payload[static_cast<size_t>(i)][byte]};
      });
    }
  });
}

TEST(PushFrom_ReadsTheSentBytesToHostBuffersOfAnyAlignment) {
  with_every_flush([](int flush) {
    machine(2, {place(1, 1, 1)}, flush);
    Set set(127);
    const auto dpus = set.dpus();
    for (const Range &range : kRanges) {
      auto payload = payloads(127, range.length, 3);
      send(set, payload, range, kSkipNone);
      for (uint64_t misalignment : {0, 8, 1}) {
        std::vector<std::vector<uint8_t>> got(127, std::vector<uint8_t>(range.length + 128, 0xEE));
        for (size_t i = 0; i < dpus.size(); ++i)
          CHECK_OK(dpu_prepare_xfer(
              dpus[i], i % 5 == 4 ? nullptr : got[i].data() + 64 + misalignment * (i % 7)));
        CHECK_OK(dpu_push_xfer(set.set, DPU_XFER_FROM_DPU, kHeap,
                               static_cast<uint32_t>(range.offset), range.length,
                               DPU_XFER_DEFAULT));
        for (size_t i = 0; i < dpus.size(); ++i) {
          std::vector<uint8_t> want(range.length + 128, 0xEE);
          if (i % 5 != 4)
            std::copy_n(payload[i].begin(), moved(range).length,
                        want.begin() + static_cast<long>(64 + misalignment * (i % 7)));
          CHECK(got[i] == want);
        }
      }
    }
  });
}

TEST(PushFrom_OfManyBytesStreamsToAlignedAndEvenlyMisalignedBuffers) {
  machine(1);
  Set set(64);
  const Range range = {0x2000 - 64, 512 << 10};  // 32 MiB in all
  auto payload = payloads(64, range.length, 11);
  send(set, payload, range, kSkipNone);
  const auto dpus = set.dpus();
  std::vector<uint8_t> all(64 * (range.length + 64) + 128);
  uint8_t *aligned = all.data() + (64 - reinterpret_cast<uintptr_t>(all.data()) % 64);
  for (uint64_t misalignment : {0, 16, 48, 4}) {
    std::fill(all.begin(), all.end(), uint8_t{0});
    for (size_t i = 0; i < 64; ++i)
      CHECK_OK(dpu_prepare_xfer(
          dpus[i], i == 9 ? nullptr : aligned + misalignment + i * (range.length + 64)));
    CHECK_OK(dpu_push_xfer(set.set, DPU_XFER_FROM_DPU, kHeap, static_cast<uint32_t>(range.offset),
                           range.length, DPU_XFER_DEFAULT));
    for (size_t i = 0; i < 64; ++i) {
      const uint8_t *got = aligned + misalignment + i * (range.length + 64);
      CHECK((i == 9) != std::equal(payload[i].begin(), payload[i].end(), got));
    }
  }
}

TEST(Broadcast_WritesTheSameBytesToEveryEnabledDpu) {
  with_every_flush([](int flush) {
    machine(1, {place(0, 2, 2)}, flush);
    Set set(63);
    for (const Range &range : kRanges) {
      const auto bytes = noise_bytes(5, range.length);
      const uint8_t unused = 0;
      fill(set.rank(0), range);
      CHECK_OK(dpu_broadcast_to(set.set, kHeap, static_cast<uint32_t>(range.offset),
                                bytes.empty() ? &unused : bytes.data(), range.length,
                                DPU_XFER_DEFAULT));
      check_region(set.rank(0), range, [&](uint32_t chip, uint32_t bank, uint64_t i) {
        return chip == 2 && bank == 2 ? -1 : int{bytes[i]};
      });
    }
  });
}

TEST(Copy_ToAndFromOneDpuMovesOnlyItsBytes) {
  machine(1);
  Set set(64);
  const auto dpus = set.dpus();
  for (const Range &range : kRanges) {
    if (range.length == 0) continue;
    const auto bytes = noise_bytes(6, range.length);
    std::vector<uint8_t> got(range.length);
    fill(set.rank(0), range);
    CHECK_OK(dpu_copy_to(dpus[8 * 3 + 6], kHeap, static_cast<uint32_t>(range.offset), bytes.data(),
                         range.length));
    check_region(set.rank(0), range, [&](uint32_t chip, uint32_t bank, uint64_t i) {
      return chip == 3 && bank == 6 ? int{bytes[i]} : -1;
    });
    CHECK_OK(dpu_copy_from(dpus[8 * 3 + 6], kHeap, static_cast<uint32_t>(range.offset), got.data(),
                           range.length));
    auto want = bytes;
    std::fill(want.begin() + static_cast<long>(moved(range).length), want.end(), uint8_t{0});
    CHECK(got == want);
  }
}

TEST(Transfers_OfIncompleteWordsAreErrorsInStrictMode) {
  machine(1, {}, 2, 1);
  Set set(64);
  const Range range = {0, 64};
  fill(set.rank(0), range);
  const auto before = surroundings(set.rank(0), range);
  auto bytes = noise_bytes(1, 64);
  CHECK_OK(dpu_prepare_xfer(set.set, bytes.data()));
  const dpu_set_t one = set.dpus()[0];
  for (const auto &[offset, length] : {Range{0, 12}, Range{4, 8}, Range{1, 0}}) {
    const auto at = static_cast<uint32_t>(offset);
    const std::string rule = ": MRAM offset " + std::to_string(offset) + " and length " +
                             std::to_string(length) + " must be multiples of 8";
    const auto refused = [&](dpu_error_t status) {
      return status == DPU_ERR_INVALID_MRAM_ACCESS && text(status).ends_with(rule);
    };
    CHECK(refused(dpu_push_xfer(set.set, DPU_XFER_TO_DPU, kHeap, at, length, DPU_XFER_DEFAULT)));
    CHECK(refused(dpu_push_xfer(set.set, DPU_XFER_FROM_DPU, kHeap, at, length, DPU_XFER_ASYNC)));
    CHECK(refused(dpu_copy_to(set.set, kHeap, at, bytes.data(), length)));
    CHECK(refused(dpu_copy_from(one, kHeap, at, bytes.data(), length)));
    CHECK(refused(dpu_copy_to_mram(one.dpu, at, bytes.data(), static_cast<mram_size_t>(length))));
  }
  CHECK(bytes == noise_bytes(1, 64));
  CHECK(surroundings(set.rank(0), range) == before);
}

TEST(Prepare_LastsForOnePushUnlessNoResetIsSet) {
  machine(1);
  Set set(64);
  uint64_t word = 0x1122334455667788;
  CHECK_OK(dpu_broadcast_to(set.set, kHeap, 0, &word, 8, DPU_XFER_DEFAULT));
  const auto dpus = set.dpus();
  uint64_t got = 0;
  CHECK_OK(dpu_prepare_xfer(dpus[0], &got));
  CHECK_OK(dpu_push_xfer(set.set, DPU_XFER_FROM_DPU, kHeap, 0, 8, DPU_XFER_NO_RESET));
  CHECK_EQ(std::exchange(got, 0), word);
  CHECK_OK(dpu_push_xfer(set.set, DPU_XFER_FROM_DPU, kHeap, 0, 8, DPU_XFER_DEFAULT));
  CHECK_EQ(std::exchange(got, 0), word);
  CHECK_OK(dpu_push_xfer(set.set, DPU_XFER_FROM_DPU, kHeap, 0, 8, DPU_XFER_DEFAULT));
  CHECK_EQ(got, 0u);
  // A push to one DPU resets only that DPU's buffer.
  CHECK_OK(dpu_prepare_xfer(dpus[1], &got));
  CHECK_OK(dpu_push_xfer(dpus[0], DPU_XFER_FROM_DPU, kHeap, 0, 8, DPU_XFER_DEFAULT));
  CHECK_EQ(got, 0u);
  CHECK_OK(dpu_push_xfer(dpus[1], DPU_XFER_FROM_DPU, kHeap, 0, 8, DPU_XFER_DEFAULT));
  CHECK_EQ(got, word);
}

TEST(Transfers_ThatAreRefusedChangeNothing) {
  machine(1, {place(0, 1, 0)});
  Set set(63);
  const Range range = {0, 256};
  fill(set.rank(0), range);
  const auto before = surroundings(set.rank(0), range);
  auto bytes = noise_bytes(1, 256);
  dpu_set_t one = set.dpus()[0], disabled = dpu_set_from_dpu(dpu_get(set.rank(0), 1, 0));
  CHECK_OK(dpu_prepare_xfer(set.set, bytes.data()));
  const auto push = [&](dpu_symbol_t symbol, uint32_t offset, size_t length,
                        int flags = DPU_XFER_DEFAULT) {
    return dpu_push_xfer_symbol(set.set, DPU_XFER_TO_DPU, symbol, offset, length,
                                static_cast<dpu_xfer_flags_t>(flags));
  };
  const dpu_symbol_t small = {0x08000000, 64}, wram = {0x100, 64}, wram_end = {0xFFF0, 64},
                     iram = {0x80000000, 64}, beyond = {0x0BFFFFF8, 64}, past = {0x0C000000, 64};
  CHECK_STATUS(push(small, 0, 65), DPU_ERR_INVALID_SYMBOL_ACCESS);
  CHECK_STATUS(push(small, 60, 8), DPU_ERR_INVALID_SYMBOL_ACCESS);
  CHECK_STATUS(push(small, UINT32_MAX, 8), DPU_ERR_INVALID_SYMBOL_ACCESS);
  CHECK_STATUS(push(small, 8, SIZE_MAX), DPU_ERR_INVALID_SYMBOL_ACCESS);
  CHECK_STATUS(push(wram, 2, 8), DPU_ERR_INVALID_WRAM_ACCESS);
  CHECK_STATUS(push(wram, 0, 6), DPU_ERR_INVALID_WRAM_ACCESS);
  CHECK_STATUS(push(wram_end, 0, 20), DPU_ERR_INVALID_WRAM_ACCESS);
  CHECK_STATUS(push(iram, 0, 8), DPU_ERR_INVALID_IRAM_ACCESS);
  CHECK_STATUS(push(beyond, 0, 16), DPU_ERR_INVALID_MRAM_ACCESS);
  CHECK_STATUS(push(past, 0, 8), DPU_ERR_INVALID_MRAM_ACCESS);
  CHECK_STATUS(push(small, 0, 8, DPU_XFER_PARALLEL), DPU_ERR_INVALID_PARALLEL_MEMORY_TRANSFER);
  CHECK_STATUS(push(small, 0, 65, DPU_XFER_ASYNC), DPU_ERR_INVALID_SYMBOL_ACCESS);
  CHECK_STATUS(dpu_push_xfer(set.set, static_cast<dpu_xfer_t>(2), kHeap, 0, 8, DPU_XFER_DEFAULT),
               DPU_ERR_INVALID_MEMORY_TRANSFER);
  CHECK_STATUS(dpu_push_xfer(set.set, DPU_XFER_TO_DPU, "variable", 0, 8, DPU_XFER_DEFAULT),
               DPU_ERR_NO_PROGRAM_LOADED);
  CHECK_STATUS(dpu_push_xfer(set.set, DPU_XFER_TO_DPU, nullptr, 0, 8, DPU_XFER_DEFAULT),
               DPU_ERR_UNKNOWN_SYMBOL);
  CHECK_STATUS(dpu_broadcast_to(set.set, kHeap, (64 << 20) - 8, bytes.data(), 16, DPU_XFER_DEFAULT),
               DPU_ERR_INVALID_SYMBOL_ACCESS);
  CHECK_STATUS(dpu_broadcast_to(set.set, kHeap, 0, nullptr, 16, DPU_XFER_DEFAULT),
               DPU_ERR_INTERNAL);
  CHECK_STATUS(dpu_copy_to_symbol(set.set, wram, 3, bytes.data(), 8), DPU_ERR_INVALID_WRAM_ACCESS);
  CHECK_STATUS(dpu_copy_from(set.set, kHeap, 0, bytes.data(), 8), DPU_ERR_INVALID_DPU_SET);
  CHECK_STATUS(dpu_copy_from(one, kHeap, 64 << 20, bytes.data(), 8), DPU_ERR_INVALID_SYMBOL_ACCESS);
  CHECK_STATUS(dpu_prepare_xfer(disabled, bytes.data()), DPU_ERR_DPU_DISABLED);
  CHECK_STATUS(dpu_push_xfer(disabled, DPU_XFER_TO_DPU, kHeap, 0, 8, DPU_XFER_DEFAULT),
               DPU_ERR_DPU_DISABLED);
  CHECK_STATUS(dpu_copy_to(disabled, kHeap, 0, bytes.data(), 8), DPU_ERR_DPU_DISABLED);
  CHECK_STATUS(dpu_copy_from(disabled, kHeap, 0, bytes.data(), 8), DPU_ERR_DPU_DISABLED);
  CHECK_STATUS(dpu_copy_to_mram(one.dpu, 64 << 20, bytes.data(), 8), DPU_ERR_INVALID_MRAM_ACCESS);
  CHECK(bytes == noise_bytes(1, 256));
  CHECK(surroundings(set.rank(0), range) == before);
  CHECK_OK(dpu_sync(set.set));
  // The prepared buffers are kept.
  CHECK_OK(push(small, 0, 64));
  CHECK(surroundings(set.rank(0), range) != before);
}

TEST(Matrix_TransfersUseTheOrderBankThenChip) {
  machine(1);
  Set set(64);
  std::vector<uint64_t> sent(64), got(64);
  dpu_transfer_matrix matrix;
  dpu_transfer_matrix_clear_all(set.rank(0), &matrix);
  matrix.offset = 40;
  matrix.size = 8;
  for (uint32_t i = 0; i < 64; ++i) {
    sent[i] = 0x0101010101010101 * i;
    matrix.ptr[i] = &sent[i];
  }
  CHECK_OK(dpu_copy_to_mrams(set.rank(0), &matrix));
  for (uint32_t chip = 0; chip < 8; ++chip)
    for (uint32_t bank = 0; bank < 8; ++bank) {
      dpu_t *dpu = dpu_get(set.rank(0), static_cast<uint8_t>(chip), static_cast<uint8_t>(bank));
      uint64_t word;
      CHECK_OK(dpu_copy_from_mram(dpu, reinterpret_cast<uint8_t *>(&word), 40, 8));
      CHECK_EQ(word, sent[bank * 8 + chip]);
      dpu_transfer_matrix_add_dpu(dpu, &matrix, &got[chip * 8 + bank]);
      CHECK(dpu_transfer_matrix_get_ptr(dpu, &matrix) == &got[chip * 8 + bank]);
    }
  CHECK_OK(dpu_copy_from_mrams(set.rank(0), &matrix));
  CHECK_EQ(got[1], sent[8]);
  matrix.type = DPU_SG_XFER_MATRIX;
  CHECK_STATUS(dpu_copy_from_mrams(set.rank(0), &matrix), DPU_ERR_SG_NOT_ACTIVATED);
}

TEST(Headers_WorkInC11) {
  machine(1);
  CHECK_EQ(sum_in_c(10), 45 + 1000);
}
