// FIFOs: the host and running PEs exchange elements.
#include <dpu_fifo.h>

#include <array>
#include <map>

#include "program_fixture.h"

using namespace fixture;

namespace {

constexpr uint32_t kInputs = 4, kOutputs = 8, kTasklets = 4;  // elements of the FIFOs
char kInputName[] = "inputs", kOutputName[] = "outputs";

struct Element {
  uint64_t number, sum;
};

struct Fifos {
  explicit Fifos(dpu_set_t set) {
    CHECK_OK(dpu_link_input_fifo(set, &in, kInputName));
    CHECK_OK(dpu_link_output_fifo(set, &out, kOutputName));
  }
  ~Fifos() {
    dpu_fifo_link_free(&in);
    dpu_fifo_link_free(&out);
  }
  Fifos(const Fifos &) = delete;
  Fifos &operator=(const Fifos &) = delete;
  dpu_fifo_link_t in, out;
};

uint64_t factor_of(size_t pe) { return 1000 * (pe + 1) + 7; }

/// Pushes kNumbers numbers to each PE, different ones to different PEs, and checks the answers.
void check_answers(int strict, uint32_t by_each_tasklet) {
  constexpr uint64_t kNumbers = 21;  // more than both FIFOs hold
  pe_machine(1, strict);
  Loaded set(20, "fifos");  // more banks than threads
  put<uint64_t>(set.set, "active", 1);
  put<uint32_t>(set.set, "by_each_tasklet", by_each_tasklet);
  for (size_t pe = 0; pe < set.all.size(); ++pe) put(set.all[pe], "factor", factor_of(pe));
  Fifos fifos(set.set);
  CHECK_OK(dpu_launch(set.set, DPU_ASYNCHRONOUS));

  std::vector<std::array<Element, kOutputs>> answers(set.all.size());
  std::vector<std::map<uint64_t, uint64_t>> sums(set.all.size());
  for (size_t pe = 0; pe < set.all.size(); ++pe)
    CHECK_OK(dpu_fifo_prepare_xfer(set.all[pe], &fifos.out, answers[pe].data()));
  const auto collect = [&] {
    CHECK_OK(dpu_fifo_push_xfer(set.set, &fifos.out, DPU_XFER_NO_RESET));
    for (size_t pe = 0; pe < set.all.size(); ++pe)
      for (uint8_t i = 0; i < get_fifo_size(&fifos.out, set.all[pe]); ++i) {
        Element element;
        std::memcpy(&element,
                    get_fifo_elem(&fifos.out, set.all[pe],
                                  reinterpret_cast<uint8_t *>(answers[pe].data()), i),
                    sizeof element);
        CHECK(sums[pe].emplace(element.number, element.sum).second);
      }
  };
  dpu_fifo_set_push_max_retries(&fifos.in, set.set, UINT32_MAX);
  dpu_fifo_set_time_for_push_retries(&fifos.in, set.set, 100);
  std::vector<uint64_t> numbers(set.all.size());
  for (uint64_t i = 0; i < kNumbers; ++i) {
    for (size_t pe = 0; pe < set.all.size(); ++pe) {
      numbers[pe] = 100 * pe + i;
      CHECK_OK(dpu_fifo_prepare_xfer(set.all[pe], &fifos.in, &numbers[pe]));
    }
    CHECK_OK(dpu_fifo_push_xfer(set.set, &fifos.in, DPU_XFER_DEFAULT));
    collect();
  }
  const uint64_t stopped = 0;
  CHECK_OK(dpu_broadcast_to(set.set, "active", 0, &stopped, sizeof stopped, DPU_XFER_PARALLEL));
  CHECK_OK(dpu_sync(set.set));
  collect();

  for (size_t pe = 0; pe < set.all.size(); ++pe) {
    CHECK_EQ(sums[pe].size(), kNumbers);
    for (uint64_t i = 0; i < kNumbers; ++i) {
      const uint64_t product = (100 * pe + i) * factor_of(pe);
      CHECK_EQ(sums[pe][100 * pe + i],
               by_each_tasklet ? product : kTasklets * product + kTasklets * (kTasklets - 1) / 2);
    }
  }
}

}  // namespace

TEST(Fifo_PassesInputsToAllTaskletsOfRunningPes) {
  for (int strict : {kLenient, kStrict}) check_answers(strict, 0);
}

TEST(Fifo_PassesEachInputToOneTaskletOfRunningPes) {
  for (int strict : {kLenient, kStrict}) check_answers(strict, 1);
}

TEST(Fifo_PushToAFullFifoIsAnError) {
  pe_machine(1, kLenient);
  Loaded set(2, "fifos");
  Fifos fifos(set.set);
  dpu_fifo_set_push_max_retries(&fifos.in, set.set, 1);
  for (uint64_t i = 0; i < kInputs; ++i) {
    const uint64_t number = 10 + i;
    CHECK_OK(dpu_fifo_prepare_xfer(set.all[1], &fifos.in, const_cast<uint64_t *>(&number)));
    CHECK_OK(dpu_fifo_push_xfer(set.set, &fifos.in, DPU_XFER_DEFAULT));
    CHECK_EQ(get<uint64_t>(set.all[1], "__inputs_data", static_cast<uint32_t>(8 * i)), number);
  }
  uint64_t number = 14;
  CHECK_OK(dpu_fifo_prepare_xfer(set.set, &fifos.in, &number));
  CHECK_STATUS(dpu_fifo_push_xfer(set.set, &fifos.in, DPU_XFER_DEFAULT), DPU_ERR_WRAM_FIFO_FULL);
  CHECK_EQ(get<uint64_t>(set.all[0], "__inputs_data"), 14u);  // had a place
  CHECK_EQ(get<uint64_t>(set.all[1], "__inputs_data"), 10u);
  CHECK_EQ(get<uint64_t>(set.all[0], "inputs", 8), 1u);
  CHECK_EQ(get<uint64_t>(set.all[1], "inputs", 8), 4u);
}

TEST(Fifo_LinksOnlyToFifosOfTheProgram) {
  pe_machine(1, kLenient);
  Loaded set(1, "fifos");
  dpu_fifo_link_t link;
  char unknown[] = "inputs2", no_fifo[] = "factor";
  CHECK_STATUS(dpu_link_input_fifo(set.set, &link, unknown), DPU_ERR_UNKNOWN_SYMBOL);
  CHECK_STATUS(dpu_link_input_fifo(set.set, &link, no_fifo), DPU_ERR_UNKNOWN_SYMBOL);
  CHECK_STATUS(dpu_link_input_fifo(set.set, nullptr, kInputName), DPU_ERR_INTERNAL);
  CHECK_STATUS(dpu_fifo_link_free(nullptr), DPU_ERR_INTERNAL);
}
