// The output of programs.
#include "program_fixture.h"

using namespace fixture;

TEST(Log_ReturnsTheOutputOfEachDpuOnce) {
  pe_machine(1);
  Loaded set(3, "layout_prints");
  put<uint32_t>(set.all[1], "log_repeats", 3);
  launch(set.set);
  CHECK_EQ(log_of(set.all[0]), std::string("line 0\n"));
  CHECK_EQ(log_of(set.all[1]), std::string("line 0\nline 1\nline 2\n"));
  CHECK_EQ(log_of(set.all[1]), std::string());
  launch(set.set);
  CHECK_EQ(log_of(set.all[0]), std::string("line 0\n"));
}

TEST(Log_OfAProgramThatDoesNotPrintIsAnError) {
  pe_machine(1);
  Loaded set(2, "layout_silent");
  launch(set.set);
  CHECK_STATUS(dpu_log_read(set.all[0], stdout), DPU_ERR_LOG_CONTEXT_MISSING);
  load(set.set, "layout_prints");
  CHECK_STATUS(dpu_log_read(set.set, stdout), DPU_ERR_INVALID_DPU_SET);
  CHECK_EQ(log_of(set.all[0]), std::string());
}

TEST(Log_ThatIsFullIsAnErrorAndThePeContinues) {
  pe_machine(1);
  Loaded set(1, "layout_small_log");
  put<uint32_t>(set.set, "log_repeats", 20);
  launch(set.set);
  FILE *nowhere = std::fopen("/dev/null", "w");
  const dpu_error_t status = dpu_log_read(set.all[0], nowhere);
  std::fclose(nowhere);
  CHECK_STATUS(status, DPU_ERR_LOG_BUFFER_TOO_SMALL);
  put<uint32_t>(set.set, "log_repeats", 2);
  launch(set.set);
  CHECK_EQ(log_of(set.all[0]), std::string("line 0\nline 1\n"));
}
