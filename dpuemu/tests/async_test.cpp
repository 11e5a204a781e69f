// Asynchronous transfers and callbacks: order, blocking, errors.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "machine_fixture.h"

using namespace fixture;

namespace {

dpu_callback_flags_t flags(int bits) { return static_cast<dpu_callback_flags_t>(bits); }

/// A callback that records its indices, waits until the gate is open, and returns `result`.
struct Recorder {
  std::mutex mutex;
  std::vector<uint32_t> indices;
  std::atomic<bool> gate{true};
  dpu_error_t result = DPU_OK;

  static dpu_error_t call(dpu_set_t, uint32_t index, void *self_pointer) {
    auto *self = static_cast<Recorder *>(self_pointer);
    while (!self->gate) std::this_thread::yield();
    std::lock_guard<std::mutex> lock(self->mutex);
    self->indices.push_back(index);
    return self->result;
  }
  std::vector<uint32_t> seen() {
    std::lock_guard<std::mutex> lock(mutex);
    auto sorted = indices;
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }
};

uint64_t word_at(dpu_set_t dpu, uint32_t offset) {
  uint64_t word = 0;
  CHECK_OK(dpu_copy_from(dpu, kHeap, offset, &word, 8));
  return word;
}

}  // namespace

TEST(Async_TransfersRunInOrderAndSyncWaitsForThem) {
  machine(3);
  Set set(3 * 64);
  auto dpus = set.dpus();
  std::vector<uint64_t> values(100), last(dpus.size());
  for (uint64_t i = 0; i < values.size(); ++i) {
    values[i] = i * 0x0101010101010101;
    CHECK_OK(dpu_broadcast_to(set.set, kHeap, 0, &values[i], 8, DPU_XFER_ASYNC));
  }
  for (size_t i = 0; i < dpus.size(); ++i) CHECK_OK(dpu_prepare_xfer(dpus[i], &last[i]));
  CHECK_OK(dpu_push_xfer(set.set, DPU_XFER_FROM_DPU, kHeap, 0, 8, DPU_XFER_ASYNC));
  CHECK_OK(dpu_sync(set.set));
  for (uint64_t word : last) CHECK_EQ(word, values.back());
}

TEST(Async_WorkComesBeforeALaterSynchronousTransferAndRankAccess) {
  machine(1);
  Set set(64);
  Recorder recorder;
  recorder.gate = false;
  uint64_t word = 42;
  CHECK_OK(dpu_callback(set.set, Recorder::call, &recorder, DPU_CALLBACK_ASYNC));
  CHECK_OK(dpu_broadcast_to(set.set, kHeap, 0, &word, 8, DPU_XFER_ASYNC));
  bool done = true, fault = true;
  CHECK_OK(dpu_status(set.set, &done, &fault));
  CHECK(!done && !fault);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    recorder.gate = true;
  });
  CHECK_EQ(word_at(set.dpus()[0], 0), 42u);
  opener.join();
  CHECK_EQ(recorder.seen().size(), 1u);
  {
    RankAccess access(set.rank(0));
    CHECK_EQ(access.byte(7, 7, 0), 42);
  }
  CHECK_OK(dpu_sync(set.set));
  CHECK_OK(dpu_status(set.set, &done, &fault));
  CHECK(done);
}

TEST(Async_TransfersWaitForRunningPesAndSyncReportsTheirFault) {
  machine(1);
  Set set(64);
  uint64_t word = 7;
  CHECK_OK(dpuemu_begin_run(set.rank(0)));
  CHECK_OK(dpu_broadcast_to(set.set, kHeap, 0, &word, 8, DPU_XFER_ASYNC));
  CHECK_OK(dpuemu_end_run(set.rank(0), false, 0));
  CHECK_OK(dpu_sync(set.set));
  CHECK_EQ(word_at(set.dpus()[9], 0), 7u);

  CHECK_OK(dpuemu_begin_run(set.rank(0)));
  CHECK_OK(dpu_broadcast_to(set.set, kHeap, 0, &word, 8, DPU_XFER_ASYNC));
  CHECK_OK(dpuemu_end_run(set.rank(0), true, 3));
  CHECK_STATUS(dpu_sync(set.set), DPU_ERR_DPU_FAULT);
}

TEST(Callback_IsCalledOncePerRankInTheCallersThread) {
  machine(3);
  Set set(3 * 64);
  Recorder recorder;
  CHECK_OK(dpu_callback(set.set, Recorder::call, &recorder, DPU_CALLBACK_DEFAULT));
  CHECK(recorder.indices == std::vector<uint32_t>({0, 1, 2}));
  recorder.result = DPU_ERR_TIMEOUT;
  CHECK_STATUS(dpu_callback(set.dpus()[70], Recorder::call, &recorder, DPU_CALLBACK_DEFAULT),
               DPU_ERR_TIMEOUT);
  CHECK_EQ(recorder.indices.back(), UINT32_MAX);
  CHECK_OK(dpu_sync(set.set));
  CHECK_STATUS(dpu_callback(set.set, Recorder::call, &recorder, DPU_CALLBACK_NONBLOCKING),
               DPU_ERR_NONBLOCKING_SYNC_CALLBACK);
  CHECK_STATUS(dpu_callback(set.set, nullptr, nullptr, DPU_CALLBACK_DEFAULT), DPU_ERR_INTERNAL);
}

TEST(AsyncCallback_ReportsItsErrorToTheNextSyncOnly) {
  machine(2);
  Set set(128);
  Recorder recorder;
  recorder.result = DPU_ERR_TIMEOUT;
  for (int how : {0, int{DPU_CALLBACK_NONBLOCKING}, int{DPU_CALLBACK_SINGLE_CALL},
                  DPU_CALLBACK_SINGLE_CALL | DPU_CALLBACK_NONBLOCKING}) {
    recorder.indices.clear();
    CHECK_OK(dpu_callback(set.set, Recorder::call, &recorder, flags(DPU_CALLBACK_ASYNC | how)));
    CHECK_STATUS(dpu_sync(set.set), DPU_ERR_TIMEOUT);
    CHECK_OK(dpu_sync(set.set));
    CHECK(recorder.seen() == (how & DPU_CALLBACK_SINGLE_CALL ? std::vector<uint32_t>({UINT32_MAX})
                                                             : std::vector<uint32_t>({0, 1})));
  }
}

TEST(NonblockingCallback_DoesNotDelayLaterWorkOfTheRank) {
  machine(1);
  Set set(64);
  for (int single : {0, int{DPU_CALLBACK_SINGLE_CALL}}) {
    Recorder recorder;
    recorder.gate = false;
    CHECK_OK(dpu_callback(set.set, Recorder::call, &recorder,
                          flags(DPU_CALLBACK_ASYNC | DPU_CALLBACK_NONBLOCKING | single)));
    uint64_t word = 5;
    CHECK_OK(dpu_broadcast_to(set.set, kHeap, 0, &word, 8, DPU_XFER_ASYNC));
    CHECK_EQ(word_at(set.dpus()[0], 0), 5u);
    CHECK(recorder.seen().empty());
    recorder.gate = true;
    CHECK_OK(dpu_sync(set.set));
    CHECK_EQ(recorder.seen().size(), 1u);
  }
}

TEST(SingleCallCallback_RunsWhenAllRanksHaveReachedItAndBlocksThem) {
  machine(2);
  Set set(128);
  Recorder first, meeting;
  first.gate = false;
  dpu_set_t rank = dpu_set_from_rank(&set.set.list.ranks[1]);
  CHECK_OK(dpu_callback(rank, Recorder::call, &first, DPU_CALLBACK_ASYNC));
  CHECK_OK(dpu_callback(set.set, Recorder::call, &meeting,
                        flags(DPU_CALLBACK_ASYNC | DPU_CALLBACK_SINGLE_CALL)));
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(meeting.seen().empty());
  first.gate = true;
  uint64_t word = 1;
  CHECK_OK(dpu_broadcast_to(dpu_set_from_rank(&set.set.list.ranks[0]), kHeap, 0, &word, 8,
                            DPU_XFER_DEFAULT));
  CHECK_EQ(meeting.seen().size(), 1u);
  CHECK_OK(dpu_sync(set.set));
}

TEST(NonblockingCallback_OfManyIsNotCalledFromTheOneBefore) {
  machine(2);
  Set set(128);
  Recorder first;
  first.gate = false;
  CHECK_OK(dpu_callback(set.set, Recorder::call, &first, DPU_CALLBACK_ASYNC));
  std::atomic<uint32_t> calls{0};
  const auto count = [](dpu_set_t, uint32_t, void *counter) {
    ++*static_cast<std::atomic<uint32_t> *>(counter);
    return DPU_OK;
  };
  for (uint32_t i = 0; i < 100'000; ++i)
    CHECK_OK(dpu_callback(
        set.set, count, &calls,
        flags(DPU_CALLBACK_ASYNC | DPU_CALLBACK_SINGLE_CALL | DPU_CALLBACK_NONBLOCKING)));
  first.gate = true;
  CHECK_OK(dpu_sync(set.set));
  CHECK_EQ(calls.load(), 100'000u);
}

TEST(Callback_MayUseTheApiOnItsRankWithSeparateBuffers) {
  machine(2);
  Set set(128);
  uint64_t outside = 1;
  CHECK_OK(dpu_prepare_xfer(set.set, &outside));
  const auto callback = [](dpu_set_t rank, uint32_t index, void *) -> dpu_error_t {
    uint64_t word = 100 + index, got = 0;
    dpu_set_t dpu;
    dpu_error_t status = dpu_prepare_xfer(rank, &word);
    if (status == DPU_OK)
      status = dpu_push_xfer(rank, DPU_XFER_TO_DPU, kHeap, 0, 8, DPU_XFER_DEFAULT);
    if (status == DPU_OK) status = dpu_sync(rank);
    DPU_FOREACH(rank, dpu) {
      if (status == DPU_OK) status = dpu_copy_from(dpu, kHeap, 0, &got, 8);
      if (got != word) return DPU_ERR_CORRUPTED_MEMORY;
    }
    return status;
  };
  for (int how : {0, int{DPU_CALLBACK_ASYNC}, DPU_CALLBACK_ASYNC | DPU_CALLBACK_NONBLOCKING}) {
    CHECK_OK(dpu_callback(set.set, callback, nullptr, flags(how)));
    CHECK_OK(dpu_sync(set.set));
    CHECK_EQ(word_at(set.dpus()[64], 0), 101u);
  }
  CHECK_OK(dpu_push_xfer(set.set, DPU_XFER_TO_DPU, kHeap, 0, 8, DPU_XFER_DEFAULT));
  CHECK_EQ(word_at(set.dpus()[64], 0), 1u);
}

TEST(Free_WaitsForAsynchronousWorkAndIsRefusedInsideACallback) {
  machine(1);
  std::vector<uint8_t> bytes(4 << 20, 3);
  dpu_set_t set;
  CHECK_OK(dpu_alloc(64, nullptr, &set));
  CHECK_OK(dpu_broadcast_to(set, kHeap, 0, bytes.data(), bytes.size(), DPU_XFER_ASYNC));
  const auto free_inside = [](dpu_set_t, uint32_t, void *whole) {
    return dpu_free(*static_cast<dpu_set_t *>(whole));
  };
  CHECK_STATUS(dpu_callback(set, free_inside, &set, DPU_CALLBACK_DEFAULT), DPU_ERR_INTERNAL);
  CHECK_OK(dpu_broadcast_to(set, kHeap, 0, bytes.data(), bytes.size(), DPU_XFER_ASYNC));
  CHECK_OK(dpu_free(set));
  std::fill(bytes.begin(), bytes.end(), uint8_t{0});  // no transfer reads it any more
}

TEST(Async_TwoThreadsOnTwoSetsDoNotInterfere) {
  machine(2);
  const auto work = [](uint64_t seed) {
    Set set(64);
    const auto sent = noise_bytes(seed, 40000);
    std::vector<uint8_t> got(sent.size());
    for (int round = 0; round < 20; ++round) {
      CHECK_OK(dpu_broadcast_to(set.set, kHeap, 0, sent.data(), sent.size(), DPU_XFER_ASYNC));
      CHECK_OK(
          dpu_copy_from(set.dpus()[static_cast<size_t>(round)], kHeap, 0, got.data(), got.size()));
      CHECK(got == sent);
    }
    CHECK_OK(dpu_sync(set.set));
  };
  std::exception_ptr failure;
  std::thread other([&] {
    try {
      work(1);
    } catch (...) {
      failure = std::current_exception();
    }
  });
  work(2);
  other.join();
  if (failure) std::rethrow_exception(failure);
}
