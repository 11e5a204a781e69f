// Symbols of programs, and their contents in WRAM and MRAM.
#include "program_fixture.h"

using namespace fixture;

namespace {

uint64_t heap_address(const char *program) {
  Loaded set(1, program);
  dpu_symbol_t heap;
  CHECK_OK(dpu_get_symbol(dpu_get_program(set.all[0].dpu), kHeap, &heap));
  CHECK_EQ(heap.address + heap.size, 0x0C000000u);
  launch(set.set);
  CHECK_EQ(number(set.all[0], "own_heap"), heap.address - 0x08000000u);
  return heap.address - 0x08000000u;
}

}  // namespace

TEST(Symbols_HaveAddressAndSize) {
  pe_machine(1);
  Set set(1);
  dpu_program_t *program = nullptr;
  CHECK_OK(dpu_load(set.set, program_path("variables").c_str(), &program));
  CHECK(program != nullptr && program == dpu_get_program(set.dpus()[0].dpu));
  dpu_symbol_t symbol;
  CHECK_OK(dpu_get_symbol(program, "six_bytes", &symbol));
  CHECK(symbol.size == 6 && symbol.address % 8 == 0 && symbol.address < 0x10000);
  CHECK_OK(dpu_get_symbol(program, "zeroed", &symbol));
  CHECK_EQ(symbol.size, 16u);
  CHECK_OK(dpu_get_symbol(program, "initialised_in_mram", &symbol));
  CHECK(symbol.size == 8 && symbol.address >= 0x08000000 && symbol.address < 0x08000040);
  CHECK_OK(dpu_get_symbol(program, "main", &symbol));
  CHECK(symbol.address >= 0x80000000);
  CHECK_STATUS(dpu_get_symbol(program, "nobody", &symbol), DPU_ERR_UNKNOWN_SYMBOL);
  CHECK_STATUS(dpu_get_symbol(program, nullptr, &symbol), DPU_ERR_UNKNOWN_SYMBOL);
  CHECK_STATUS(dpu_get_symbol(nullptr, "launches", &symbol), DPU_ERR_NO_PROGRAM_LOADED);
}

TEST(Transfer_OfASymbolChecksNameSizeAndPlace) {
  pe_machine(1);
  Loaded set(2, "variables");
  const dpu_set_t dpu = set.all[0];
  std::vector<uint8_t> bytes(64);
  CHECK_STATUS(dpu_copy_to(set.set, "nobody", 0, bytes.data(), 4), DPU_ERR_UNKNOWN_SYMBOL);
  CHECK_STATUS(dpu_copy_from(dpu, "nobody", 0, bytes.data(), 4), DPU_ERR_UNKNOWN_SYMBOL);
  CHECK_STATUS(dpu_copy_to(set.set, "zeroed", 0, bytes.data(), 20), DPU_ERR_INVALID_SYMBOL_ACCESS);
  CHECK_STATUS(dpu_copy_to(set.set, "zeroed", 12, bytes.data(), 8), DPU_ERR_INVALID_SYMBOL_ACCESS);
  CHECK_STATUS(dpu_copy_to(set.set, "zeroed", UINT32_MAX - 3, bytes.data(), 8),
               DPU_ERR_INVALID_SYMBOL_ACCESS);
  CHECK_STATUS(dpu_copy_to(set.set, "left_in_mram", 8, bytes.data(), 8),
               DPU_ERR_INVALID_SYMBOL_ACCESS);
  CHECK_STATUS(dpu_copy_to(set.set, "six_bytes", 0, bytes.data(), 6), DPU_ERR_INVALID_WRAM_ACCESS);
  CHECK_STATUS(dpu_copy_to(set.set, "zeroed", 2, bytes.data(), 4), DPU_ERR_INVALID_WRAM_ACCESS);
  CHECK_STATUS(dpu_copy_from(dpu, "zeroed", 4, bytes.data(), 3), DPU_ERR_INVALID_WRAM_ACCESS);
  CHECK_STATUS(dpu_copy_from(dpu, "main", 0, bytes.data(), 8), DPU_ERR_INVALID_IRAM_ACCESS);
  const dpu_symbol_t beyond = {0xFFF8, 64};
  CHECK_STATUS(dpu_copy_from_symbol(dpu, beyond, 0, bytes.data(), 16), DPU_ERR_INVALID_WRAM_ACCESS);
  CHECK_OK(dpu_copy_from_symbol(dpu, beyond, 0, bytes.data(), 8));
  CHECK_EQ(number(dpu, "zeroed"), 0u);
}

TEST(Transfer_ReachesTheWramOfEveryPe) {
  pe_machine(2);
  Loaded set(128, "variables");
  std::vector<uint32_t> sent(set.all.size()), got(set.all.size());
  for (uint32_t i = 0; i < sent.size(); ++i) {
    sent[i] = 1000 + i;
    CHECK_OK(dpu_prepare_xfer(set.all[i], &sent[i]));
  }
  CHECK_OK(dpu_push_xfer(set.set, DPU_XFER_TO_DPU, "number", 0, 4, DPU_XFER_DEFAULT));
  launch(set.set);
  for (uint32_t i = 0; i < got.size(); ++i) CHECK_OK(dpu_prepare_xfer(set.all[i], &got[i]));
  CHECK_OK(dpu_push_xfer(set.set, DPU_XFER_FROM_DPU, "results", 16, 4, DPU_XFER_DEFAULT));
  for (uint32_t i = 0; i < got.size(); ++i) CHECK_EQ(got[i], 3 * (1000 + i));
}

TEST(HeapPointer_IsAfterTheLogAndTheMramVariables) {
  pe_machine(1);
  CHECK_EQ(heap_address("layout_silent"), 0u);
  CHECK_EQ(heap_address("layout_prints"), 1u << 20);
  CHECK_EQ(heap_address("layout_small_log"), 64u);
  CHECK_EQ(heap_address("layout_variables"), 40u);
  CHECK_EQ(heap_address("layout_both"), 64u + 40u);
}

TEST(MramVariables_HaveTheOrderOfTheSource) {
  pe_machine(1);
  Set set(1);
  dpu_program_t *program = nullptr;
  CHECK_OK(dpu_load(set.set, program_path("variables").c_str(), &program));
  dpu_symbol_t first, second, last;
  CHECK_OK(dpu_get_symbol(program, "left_in_mram", &first));
  CHECK_OK(dpu_get_symbol(program, "left_static", &second));
  CHECK_OK(dpu_get_symbol(program, "left_last", &last));
  CHECK_EQ(second.address - first.address, 8u);
  CHECK_EQ(last.address - second.address, 16u);
}

TEST(WramHeap_BeginsAfterTheDeclaredStacks) {
  pe_machine(1);
  Set set(1);
  dpu_program_t *many = nullptr, *few = nullptr;
  CHECK_OK(dpu_load(set.set, program_path("increment").c_str(), &many));
  CHECK_OK(dpu_load(set.set, program_path("increment_5").c_str(), &few));
  dpu_symbol_t with_many, with_few;
  CHECK_OK(dpu_get_symbol(many, "__sys_heap_pointer_reset", &with_many));
  CHECK_OK(dpu_get_symbol(few, "__sys_heap_pointer_reset", &with_few));
  CHECK_EQ(with_many.address - with_few.address, 11u * 1024);
  CHECK(with_few.address > 5 * 1024 && with_many.address < 24 * 1024);
}

TEST(Globals_OfAllKindsPersistOverLaunchesAndHoldValidPointers) {
  pe_machine(1);
  Loaded set(3, "variables");
  put<uint32_t>(set.set, "number", 14);
  for (uint32_t round = 1; round <= 3; ++round) {
    launch(set.set);
    for (dpu_set_t dpu : set.all) {
      CHECK_EQ(number(dpu, "launches"), 100 + round);
      CHECK_EQ(get<uint64_t>(dpu, "plain"), 0x1122334455667788u + round);
      CHECK_EQ(number(dpu, "zeroed", 2), 5 * round);
      const uint32_t want[] = {8, 5 * round, 30, 17, 42, 'e'};
      for (uint32_t i = 0; i < 6; ++i) CHECK_EQ(number(dpu, "results", i), want[i]);
      CHECK_EQ(get<uint64_t>(dpu, "initialised_in_mram"), 77u + round);
    }
  }
}

TEST(WramHeap_KeepsItsContentsOverLaunchesAndLoads) {
  pe_machine(1);
  Loaded set(1, "variables");
  launch(set.set);
  launch(set.set);
  CHECK_EQ(get<uint64_t>(set.all[0], "heap_word"), 0xABCD0000u + 101);
  load(set.set, "variables");
  launch(set.set);
  CHECK_EQ(get<uint64_t>(set.all[0], "heap_word"), 0xABCD0000u + 102);
}
