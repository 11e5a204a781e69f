// Features that published programs need: old C, addresses in integers, structures shared with the
// host.
#include "program_fixture.h"

using namespace fixture;

namespace {

#include "programs/shared_struct.h"

}  // namespace

TEST(OldPrograms_KeepAddressesInIntegersAndUseOldC) {
  pe_machine(1);
  Loaded set(2, "old_style");
  std::vector<uint32_t> words(256);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < words.size(); ++i) sum += words[i] = i * 3;
  CHECK_OK(dpu_copy_to(set.set, kHeap, 0, words.data(), 4 * words.size()));
  launch(set.set);
  for (dpu_set_t dpu : set.all) {
    CHECK_EQ(number(dpu, "sum"), sum);
    const std::string log =
        log_of(dpu);  // a %lu with 32 bits may print anything, but the rest is right
    CHECK_EQ(log.substr(log.find(' ')), std::string(" 5 7\n"));
  }
}

TEST(SharedStructures_HaveTheSameLayoutOnBothSides) {
  pe_machine(1);
  Loaded set(1, "old_style");
  shared sent = {}, got = {};
  sent.small = 50;
  sent.wide = -7000000000;
  sent.flag = true;
  sent.kind = FIRST;
  sent.bytes[2] = 200;
  sent.real = 2.5;
  dpu_symbol_t symbol;
  CHECK_OK(dpu_get_symbol(dpu_get_program(set.all[0].dpu), "arguments", &symbol));
  CHECK_EQ(symbol.size, sizeof(shared));
  put(set.set, "arguments", sent);
  launch(set.set);
  got = get<shared>(set.all[0], "answer");
  CHECK_EQ(number(set.all[0], "offset_of_next"), sizeof(shared));
  CHECK_EQ(got.small, 50u + 2 + 4 + 3 + 5);
  CHECK_EQ(got.wide, -7000000000 + 0x100 + 1);
  CHECK_EQ(got.flag, false);
  CHECK_EQ(got.kind, SECOND);
  CHECK_EQ(got.bytes[2], 200);
  CHECK_EQ(got.real, 2.5);
}

TEST(Globals_AreSeparateForEveryPe) {
  pe_machine(2);
  Loaded set(128, "variables");
  for (uint32_t i = 0; i < 128; ++i)
    for (uint32_t round = 0; round < i % 3; ++round) launch(set.all[i]);
  for (uint32_t i = 0; i < 128; ++i) {
    CHECK_EQ(number(set.all[i], "launches"), 100 + i % 3);
    CHECK_EQ(number(set.all[i], "zeroed", 2), 5 * (i % 3));
  }
}
