// The C++ API of the SDK: each operation has the effect of its C call.
#include <dpu>
#include <sstream>

#include "program_fixture.h"

using dpu::DpuError;
using dpu::DpuSet;
using namespace fixture;

namespace {

constexpr uint32_t kDpus = 70;

template <class Act>
void check_throws(dpu_error_t status, Act act) {
  try {
    act();
  } catch (const DpuError &error) {
    CHECK_EQ(text(error.status()), text(status));
    CHECK(std::string(error.what()).size() > 5);
    return;
  }
  harness::fail(__FILE__, __LINE__, "no DpuError");
}

std::vector<std::vector<uint32_t>> numbers(uint32_t seed, uint32_t words = 4) {
  std::vector<std::vector<uint32_t>> all(kDpus, std::vector<uint32_t>(words));
  for (uint32_t i = 0; i < kDpus; ++i)
    for (uint32_t j = 0; j < words; ++j) all[i][j] = seed + 100 * i + j;
  return all;
}

}  // namespace

TEST(Cxx_RanksAndDpusOfASet) {
  pe_machine(2);
  DpuSet set = DpuSet::allocate(kDpus);
  CHECK_EQ(set.ranks().size(), 2u);
  CHECK_EQ(set.dpus().size(), kDpus);
  CHECK_EQ(set.ranks()[0]->dpus().size() + set.ranks()[1]->dpus().size(), kDpus);
  CHECK(set.dpus()[69]->ranks()[0] == set.ranks()[1] && set.dpus()[5]->dpus()[0] == set.dpus()[5]);
  check_throws(DPU_ERR_ALLOCATION, [] { DpuSet::allocateRanks(1); });
}

TEST(Cxx_TheLastCopyFreesTheSet) {
  pe_machine(1);
  {
    DpuSet copy = [] {
      DpuSet set = DpuSet::allocateRanks();
      return DpuSet(set);
    }();
    check_throws(DPU_ERR_ALLOCATION, [] { DpuSet::allocate(1); });
  }
  CHECK_EQ(DpuSet::allocate().dpus().size(), 64u);
}

TEST(Cxx_CopiesReachEachDpu) {
  pe_machine(2);
  DpuSet set = DpuSet::allocate(kDpus);
  const auto sent = numbers(1);
  auto back = numbers(0);
  dpu::DpuSymbol heap(0x08000000, 64);
  set.copy(kHeap, 0, sent);
  set.copy(heap, 16, sent, 8);
  set.copy(back, kHeap);
  CHECK(back == sent);
  set.copy(back, 8, heap, 16);
  CHECK(back == sent);
  set.copy(std::string(kHeap), std::vector<uint32_t>{7, 8, 9, 10});
  set.copy(back, kHeap);
  for (const auto &each : back) CHECK(each == (std::vector<uint32_t>{7, 8, 9, 10}));
  set.dpus()[3]->copy(heap, 8, std::vector<uint32_t>{1, 2, 3, 4}, 8);
  set.copy(back, heap);
  CHECK(back[3] == (std::vector<uint32_t>{7, 8, 1, 2}) &&
        back[4] == (std::vector<uint32_t>{7, 8, 9, 10}));
}

TEST(Cxx_BuffersOfWrongSizesAreRefused) {
  pe_machine(2);
  DpuSet set = DpuSet::allocate(kDpus);
  auto some = numbers(1);
  check_throws(DPU_ERR_INVALID_MEMORY_TRANSFER, [&] { set.copy(some, 17, kHeap); });
  some[9].push_back(1);
  check_throws(DPU_ERR_INVALID_MEMORY_TRANSFER, [&] { set.copy(kHeap, some); });
  some.resize(kDpus - 1);
  check_throws(DPU_ERR_INVALID_MEMORY_TRANSFER, [&] { set.copy(kHeap, some, 8); });
  some.clear();
  check_throws(DPU_ERR_INVALID_MEMORY_TRANSFER, [&] { set.copy(some, kHeap); });
  check_throws(DPU_ERR_NO_PROGRAM_LOADED, [&] { set.copy("nothing", std::vector<uint32_t>{1}); });
}

TEST(Cxx_ScatterGather) {
  pe_machine(2);
  DpuSet set = DpuSet::allocate(kDpus, "sgXferEnable=true");
  auto sent = numbers(1), back = numbers(0);
  const auto halves = [](std::vector<std::vector<uint32_t>> &of) {
    return [&of](sg_block_info *out, uint32_t dpu, uint32_t block) {
      *out = {reinterpret_cast<uint8_t *>(of[dpu].data() + 2 * block), 8};
      return block < 2;
    };
  };
  set.copyScatterGather(kHeap, halves(sent), 16);
  set.copyScatterGather(halves(back), 16, kHeap);
  CHECK(back == sent);
  auto queue = set.async();
  sent = numbers(500);
  queue.copyScatterGather(dpu::DpuSymbol(0x08000000, 64), 8u, halves(sent), 16);
  queue.copyScatterGather(halves(back), 16, kHeap, 8u);
  queue.sync();
  CHECK(back == sent);
  check_throws(DPU_ERR_SG_LENGTH_MISMATCH, [&] { set.copyScatterGather(kHeap, halves(sent), 24); });
  set.copyScatterGather(kHeap, halves(sent), 24, false);
}

TEST(Cxx_ProgramsRunAndPrint) {
  pe_machine(2);
  DpuSet set = DpuSet::allocate(kDpus);
  dpu::DpuProgram program = set.load(program_path("print"));
  dpu::DpuSymbol topic = program.get("topic");
  set.copy(topic, std::vector<uint32_t>{0});
  set.exec();
  std::ostringstream first, all;
  set.dpus()[2]->log(first);
  CHECK(first.str().rfind("=== DPU#0x2 ===\n", 0) == 0 && first.str().size() > 50);
  set.log(all);
  CHECK(all.str().size() > (kDpus - 2) * (first.str().size() - 16));
  check_throws(DPU_ERR_UNKNOWN_SYMBOL, [&] { program.get("nothing"); });
  check_throws(DPU_ERR_ELF_NO_SUCH_FILE, [&] { set.load("/nothing"); });
}

TEST(Cxx_CallbacksRunInTheOrderOfTheQueue) {
  pe_machine(2);
  DpuSet set = DpuSet::allocate(kDpus);
  auto queue = set.async();
  const auto first = numbers(1), second = numbers(2);
  std::atomic<unsigned> dpus{0}, calls{0};
  std::vector<std::vector<uint32_t>> seen[2] = {numbers(0), numbers(0)};
  queue.copy(kHeap, first);
  queue.call([&](DpuSet &rank, unsigned index) {
    rank.copy(seen[index], kHeap);
    dpus += static_cast<unsigned>(rank.dpus().size());
  });
  queue.copy(kHeap, second);
  queue.call([&](DpuSet &all, unsigned) { calls += static_cast<unsigned>(all.ranks().size()); },
             true, true);
  queue.sync();
  CHECK_EQ(dpus.load(), kDpus);
  CHECK_EQ(calls.load(), 2u);
  CHECK(seen[0][0] == first[0] && seen[0][9] == first[9]);
  queue.call([](DpuSet &, unsigned) { throw DpuError(DPU_ERR_TIMEOUT); });
  check_throws(DPU_ERR_TIMEOUT, [&] { queue.sync(); });
}
