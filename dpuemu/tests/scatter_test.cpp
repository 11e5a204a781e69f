// Scatter-gather transfers: the bytes of all blocks at their places, refused transfers without
// effect.
#include <atomic>
#include <numeric>

#include "program_fixture.h"

using namespace fixture;

namespace {

constexpr uint32_t kDpus = 70;  // two ranks, one of them incomplete
constexpr uint32_t kOffset = 40;
const char *const kProfile = "backend=hw, sgXferEnable=true, sgXferMaxBlocksPerDpu=64";

/// A set that allows scatter-gather transfers.
class ScatterSet : public Set {
 public:
  explicit ScatterSet(const char *profile = kProfile, int strict = 2) {
    machine(2, {}, 2, strict);
    CHECK_OK(dpu_alloc(kDpus, profile, &set));
  }
};

/// Host memory of all DPUs, cut into blocks of different lengths, in an order that differs from the
/// order in MRAM.
struct Blocks {
  uint64_t length;
  std::vector<std::vector<uint32_t>> lengths;
  std::vector<std::vector<uint8_t>> bytes;
  std::atomic<uint32_t> calls{0};  // ranks call `next` in parallel

  /// missing: bytes per DPU that no block has.
  Blocks(uint64_t bytes_per_dpu, uint64_t seed, uint64_t missing = 0) : length(bytes_per_dpu) {
    for (uint32_t dpu = 0; dpu < kDpus; ++dpu) {
      lengths.emplace_back();
      for (uint64_t rest = length - missing, i = 0; rest > 0; ++i) {
        const uint64_t wanted = i == 2 ? 0 : 1 + noise(seed + dpu, i) * length / 1000;
        lengths.back().push_back(static_cast<uint32_t>(i == 40 ? rest : std::min(rest, wanted)));
        rest -= lengths.back().back();
      }
      bytes.push_back(noise_bytes(seed + dpu, length));
    }
  }

  /// Where the block lies in the DPU's host memory: the blocks stand there in descending order.
  uint8_t *address(uint32_t dpu, uint32_t block) {
    const auto &own = lengths[dpu];
    return bytes[dpu].data() + std::accumulate(own.begin() + block + 1, own.end(), uint64_t{0});
  }

  /// The bytes in the order of MRAM; after the last block, 0.
  std::vector<uint8_t> gathered(uint32_t dpu) {
    std::vector<uint8_t> all;
    for (uint32_t i = 0; i < lengths[dpu].size(); ++i)
      all.insert(all.end(), address(dpu, i), address(dpu, i) + lengths[dpu][i]);
    all.resize(length);
    return all;
  }

  static bool next(sg_block_info *out, uint32_t dpu, uint32_t block, void *arguments) {
    Blocks &self = **static_cast<Blocks **>(arguments);
    ++self.calls;
    if (block >= self.lengths[dpu].size()) return false;
    *out = {self.address(dpu, block), self.lengths[dpu][block]};
    return true;
  }
};

dpu_error_t push(dpu_set_t set, dpu_xfer_t direction, Blocks &blocks,
                 uint32_t flags = DPU_SG_XFER_DEFAULT) {
  Blocks *self = &blocks;  // an asynchronous transfer copies this pointer
  get_block_t source = {Blocks::next, &self, sizeof self};
  return dpu_push_sg_xfer(set, direction, kHeap, kOffset, blocks.length, &source,
                          static_cast<dpu_sg_xfer_flags_t>(flags));
}

/// The MRAM of a DPU around the transfer.
std::vector<uint8_t> mram(dpu_set_t dpu, uint64_t length) {
  return heap_bytes(dpu, kOffset - 8, length + 16);
}

void fill(Set &set, uint64_t length) {
  auto dpus = set.dpus();
  for (uint32_t i = 0; i < kDpus; ++i) {
    const auto bytes = noise_bytes(5000 + i, length + 16);
    CHECK_OK(dpu_copy_to(dpus[i], kHeap, kOffset - 8, bytes.data(), bytes.size()));
  }
}

/// What `mram` returns if the transfer has written `bytes`.
std::vector<uint8_t> filled_except(uint32_t dpu, const std::vector<uint8_t> &bytes) {
  auto all = noise_bytes(5000 + dpu, bytes.size() + 16);
  std::copy(bytes.begin(), bytes.end(), all.begin() + 8);
  return all;
}

constexpr uint64_t kLengths[] = {8, 16, 4096, 16384, 50000};

}  // namespace

TEST(Scatter_GathersTheBlocksOfEachDpuIntoMram) {
  ScatterSet set;
  for (const uint64_t length : kLengths) {
    fill(set, length);
    Blocks blocks(length, 100);
    CHECK_OK(push(set.set, DPU_XFER_TO_DPU, blocks));
    const auto dpus = set.dpus();
    for (uint32_t i = 0; i < kDpus; ++i)
      CHECK(mram(dpus[i], length) == filled_except(i, blocks.gathered(i)));
  }
}

TEST(Scatter_ScattersMramToTheBlocksOfEachDpu) {
  ScatterSet set;
  for (const uint64_t length : kLengths) {
    fill(set, length);
    Blocks blocks(length, 200);
    CHECK_OK(push(set.set, DPU_XFER_FROM_DPU, blocks));
    for (uint32_t i = 0; i < kDpus; ++i) {
      const auto all = noise_bytes(5000 + i, length + 16);
      CHECK(blocks.gathered(i) == std::vector<uint8_t>(all.begin() + 8, all.end() - 8));
    }
  }
}

TEST(Scatter_MovesOnlyWholeWordsAndInStrictModeRefusesOthers) {
  for (const int strict : {2, 1}) {
    ScatterSet set(kProfile, strict);
    fill(set, 16);
    Blocks blocks(13, 250);
    CHECK_STATUS(push(set.set, DPU_XFER_TO_DPU, blocks),
                 strict == 1 ? DPU_ERR_INVALID_MRAM_ACCESS : DPU_OK);
    const auto dpus = set.dpus();
    for (uint32_t i = 0; i < kDpus; ++i) {
      const auto sent = blocks.gathered(i), all = mram(dpus[i], 16);
      auto want = noise_bytes(5000 + i, 32);
      if (strict == 2) std::copy_n(sent.begin(), 8, want.begin() + 8);
      CHECK(all == want);
    }
  }
}

TEST(Scatter_RunsInTheOrderOfTheAsynchronousWork) {
  ScatterSet set;
  Blocks first(4096, 300), second(4096, 400), back(4096, 500);
  CHECK_OK(push(set.set, DPU_XFER_TO_DPU, first, DPU_SG_XFER_ASYNC));
  CHECK_OK(push(set.set, DPU_XFER_TO_DPU, second, DPU_SG_XFER_ASYNC));
  CHECK_OK(push(set.set, DPU_XFER_FROM_DPU, back, DPU_SG_XFER_ASYNC));
  CHECK_OK(dpu_sync(set.set));
  for (uint32_t i = 0; i < kDpus; ++i) CHECK(back.gathered(i) == second.gathered(i));
}

TEST(Scatter_WithoutLengthCheckFillsMramWithZerosAndLeavesHostBytes) {
  ScatterSet set;
  constexpr uint64_t kLength = 20000;
  fill(set, kLength);
  Blocks blocks(kLength, 600, 7777);
  const auto before = blocks.bytes;
  CHECK_OK(push(set.set, DPU_XFER_TO_DPU, blocks, DPU_SG_XFER_DISABLE_LENGTH_CHECK));
  const auto dpus = set.dpus();
  for (uint32_t i = 0; i < kDpus; ++i)
    CHECK(mram(dpus[i], kLength) == filled_except(i, blocks.gathered(i)));
  fill(set, kLength);
  CHECK_OK(push(set.set, DPU_XFER_FROM_DPU, blocks, DPU_SG_XFER_DISABLE_LENGTH_CHECK));
  for (uint32_t i = 0; i < kDpus; ++i)
    CHECK(std::equal(before[i].end() - 7777, before[i].end(), blocks.bytes[i].end() - 7777));
}

TEST(Scatter_OfOneDpuOrOneRankCountsItsDpusFromZero) {
  ScatterSet set;
  Blocks blocks(512, 700);
  CHECK_OK(push(set.dpus()[66], DPU_XFER_TO_DPU, blocks));
  CHECK(heap_bytes(set.dpus()[66], kOffset, 512) == blocks.gathered(0));
  dpu_set_t rank;
  DPU_RANK_FOREACH(set.set, rank) CHECK_OK(push(rank, DPU_XFER_TO_DPU, blocks));
  CHECK(heap_bytes(set.dpus()[0], kOffset, 512) == blocks.gathered(0));
}

TEST(Scatter_RefusalMovesNoByte) {
  ScatterSet set;
  fill(set, 4096);
  Blocks blocks(4096, 800);
  const auto before = blocks.bytes;
  const auto refused = [&](dpu_error_t status, const char *symbol, uint32_t offset, uint64_t length,
                           get_block_t *source) {
    for (const dpu_xfer_t direction : {DPU_XFER_TO_DPU, DPU_XFER_FROM_DPU})
      CHECK_STATUS(
          dpu_push_sg_xfer(set.set, direction, symbol, offset, length, source, DPU_SG_XFER_DEFAULT),
          status);
    CHECK(blocks.bytes == before);
    for (uint32_t i = 0; i < kDpus; ++i)
      CHECK(mram(set.dpus()[i], 4096) == noise_bytes(5000 + i, 4096 + 16));
  };
  Blocks *self = &blocks;
  get_block_t source = {Blocks::next, &self, 0}, no_function = {nullptr, nullptr, 0};
  refused(DPU_ERR_SG_LENGTH_MISMATCH, kHeap, kOffset, 4104, &source);
  refused(DPU_ERR_SG_LENGTH_MISMATCH, kHeap, kOffset, 4088, &source);
  refused(DPU_ERR_INVALID_SYMBOL_ACCESS, kHeap, DPUEMU_MRAM_BYTES - 8, 4096, &source);
  refused(DPU_ERR_INTERNAL, kHeap, kOffset, 4096, nullptr);
  refused(DPU_ERR_INTERNAL, kHeap, kOffset, 4096, &no_function);
  refused(DPU_ERR_NO_PROGRAM_LOADED, "nothing", kOffset, 4096, &source);
  blocks.lengths[69].insert(blocks.lengths[69].end(), 64, 0);
  refused(DPU_ERR_SG_TOO_MANY_BLOCKS, kHeap, kOffset, 4096, &source);
  CHECK_STATUS(push(set.set, static_cast<dpu_xfer_t>(7), blocks), DPU_ERR_INVALID_MEMORY_TRANSFER);
}

TEST(Scatter_ErrorsOfBlocksReachSync) {
  ScatterSet set;
  Blocks blocks(4096, 900, 8);
  CHECK_OK(push(set.set, DPU_XFER_TO_DPU, blocks, DPU_SG_XFER_ASYNC));
  CHECK_STATUS(dpu_sync(set.set), DPU_ERR_SG_LENGTH_MISMATCH);
}

TEST(Scatter_NeedsItsProfileAndMram) {
  for (const char *profile :
       {static_cast<const char *>(nullptr), "sgXferEnable=false", "sgXferMaxBlocksPerDpu=8"}) {
    ScatterSet set(profile);
    Blocks blocks(64, 1000);
    CHECK_STATUS(push(set.set, DPU_XFER_TO_DPU, blocks), DPU_ERR_SG_NOT_ACTIVATED);
    CHECK_EQ(blocks.calls.load(), 0u);
  }
  dpu_set_t set;
  for (const char *profile : {"sgXferMaxBlocksPerDpu=0", "sgXferMaxBlocksPerDpu=x",
                              "sgXferMaxBlocksPerDpu=", "sgXferEnable", "=true", "a=1,"})
    CHECK_STATUS(dpu_alloc(1, profile, &set), DPU_ERR_INVALID_PROFILE);
  ScatterSet enabled("sgXferEnable=true");
  Blocks blocks(64, 1000);
  get_block_t source = {Blocks::next, nullptr, 0};
  CHECK_OK(push(enabled.set, DPU_XFER_TO_DPU, blocks));
  const dpu_symbol_t wram = {0x100, 64};
  CHECK_STATUS(dpu_push_sg_xfer_symbol(enabled.set, DPU_XFER_TO_DPU, wram, 0, 64, &source,
                                       DPU_SG_XFER_DEFAULT),
               DPU_ERR_SG_NOT_MRAM_SYMBOL);
}
