// Batches have the results of calls one after another.
#include <pidcomm/batch.h>
#include <pidcomm/operators.h>

#include "machine.h"
#include "pidcomm/pidcomm.hpp"

namespace {

using namespace machine;

constexpr std::size_t kBytes = 1 << 14, kEnd = 1 << 16;

/// Requests, each of which reads what earlier requests have written.
std::vector<pidcomm_request> requests(std::vector<std::uint8_t> &host) {
  namespace request = pidcomm::request;
  std::vector<pidcomm_request> all = {
      request::alltoall("10", kBytes, 0, kBytes, PIDCOMM_INT32),
      request::allreduce("01", kBytes, kBytes, 0, PIDCOMM_INT32, PIDCOMM_SUM),
      request::reduce("11", 64, 0, host.data(), 64, PIDCOMM_INT32, PIDCOMM_MAX),
      request::broadcast("11", 64, host.data(), 64, 2 * kBytes, PIDCOMM_INT32),
      request::allreduce("10", 0, 0, 0, PIDCOMM_INT32, PIDCOMM_SUM),
      request::reduce_scatter("01", kBytes, 0, 3 * kBytes, PIDCOMM_INT64, PIDCOMM_MIN),
  };
  pidcomm_request scan = all[1];
  scan.collective = PIDCOMM_SCAN;
  scan.dst = kBytes;
  all.push_back(scan);
  return all;
}

TEST(Batch_HasTheResultsOfCallsOneAfterAnother) {
  power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const Hypercube cube(set, {16, 8});
  for (int technique :
       {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_TECHNIQUE_CONVENTIONAL, PIDCOMM_TECHNIQUE_PR_IM}) {
    pidcomm_options options{};
    options.technique = technique;
    options.scratch_offset = kEnd;
    Picture mram;
    mram.cover(0, kEnd);
    mram.poison(cube, 1);
    std::vector<std::uint8_t> host(64), host_of_batch(64);
    pidcomm_trace sum{}, trace{};
    mram.write(cube);
    for (const pidcomm_request &request : requests(host)) {
      pidcomm_trace one{};
      CHECK_EQ(pidcomm_run(cube.get(), &request, &options, &one), +PIDCOMM_OK);
      sum.mram_bytes_read += one.mram_bytes_read;
      sum.pe_launches += one.pe_launches;
    }
    const Picture want = mram.read(cube);
    mram.write(cube);
    const std::vector<pidcomm_request> all = requests(host_of_batch);
    const std::vector<pidcomm_options> same(all.size(), options);
    CHECK_EQ(pidcomm_batch(cube.get(), all.data(), all.size(), same.data(), &trace), +PIDCOMM_OK);
    CHECK_EQ(mram.read(cube).difference(cube, want), "");
    CHECK(host == host_of_batch);
    CHECK_EQ(trace.mram_bytes_read, sum.mram_bytes_read);
    CHECK_EQ(trace.pe_launches, sum.pe_launches);
    CHECK_EQ(trace.technique, technique);
  }
}

TEST(Batch_FlushesEveryLineBeforeItIsLoaded) {
  power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const Hypercube cube(set, {16, 8});
  pidcomm_options options{};
  options.isa = PIDCOMM_ISA_AUDIT;
  options.coherence = PIDCOMM_COHERENCE_HARDWARE;
  Picture mram;
  mram.cover(0, kEnd);
  mram.poison(cube, 1);
  std::vector<std::uint8_t> host(64), host_of_batch(64);
  const std::vector<pidcomm_request> all = requests(host), batch = requests(host_of_batch);
  const std::vector<pidcomm_options> same(all.size(), options);
  // audit_of counts only the last request of a batch.
  const std::size_t step = effort::is_small() ? 3 : 1;
  for (std::size_t count = 1; count <= all.size(); count += step) {
    mram.write(cube);
    for (std::size_t i = 0; i < count; ++i)
      CHECK_EQ(pidcomm_run(cube.get(), &all[i], &options, nullptr), +PIDCOMM_OK);
    const pidcomm_audit want = audit_of(cube);
    const Picture want_mram = mram.read(cube);
    mram.write(cube);
    pidcomm_trace trace{};
    CHECK_EQ(pidcomm_batch(cube.get(), batch.data(), count, same.data(), &trace), +PIDCOMM_OK);
    const pidcomm_audit audit = audit_of(cube);
    CHECK_EQ(mram.read(cube).difference(cube, want_mram), "");
    CHECK(host == host_of_batch);
    CHECK_EQ(trace.coherence, +PIDCOMM_COHERENCE_HARDWARE);
    CHECK_EQ(audit.loads_unflushed, 0u);
    CHECK_EQ(audit.lines_flushed, want.lines_flushed);
    CHECK_EQ(audit.lines_loaded, want.lines_loaded);
    CHECK(audit.lines_loaded == 0 || audit.lines_flushed != 0);
  }
}

TEST(Batch_OfCppHasOneOptionForEachRequestOrNone) {
  namespace request = pidcomm::request;
  power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  pidcomm::Hypercube cube(set.get(), {8});
  std::vector<std::uint64_t> rows(8, 3), result(8);
  cube.write(0, 8, rows.data());
  const std::vector<pidcomm_request> all = {
      request::allreduce("1", 8, 0, 8, PIDCOMM_UINT64, PIDCOMM_SUM),
      request::allreduce("1", 8, 8, 16, PIDCOMM_UINT64, PIDCOMM_SUM)};
  CHECK_EQ(cube.batch(all).technique, +PIDCOMM_TECHNIQUE_TILE);
  cube.read(16, 8, result.data());
  for (const std::uint64_t value : result) CHECK_EQ(value, 3u * 8 * 8);
  pidcomm_options conventional{};
  conventional.technique = PIDCOMM_TECHNIQUE_CONVENTIONAL;
  CHECK_EQ(cube.batch(all, {conventional, conventional}).technique,
           +PIDCOMM_TECHNIQUE_CONVENTIONAL);
  CHECK_EQ(cube.batch({}).mram_bytes_read, 0u);
  const auto status_of = [](const auto &call) {
    try {
      call();
    } catch (const pidcomm::Error &error) {
      return error.status();
    }
    return +PIDCOMM_OK;
  };
  CHECK_EQ(status_of([&] { cube.batch(all, {conventional}); }), +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(status_of([&] { cube.batch({all[0], request::alltoall("1", 8, 0, 64, 21)}); }),
           +PIDCOMM_ERR_SIZE);
}

TEST(Batch_ChecksAllRequestsBeforeAByteMoves) {
  power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8});
  Picture mram;
  mram.cover(0, 1024);
  mram.poison(cube, 1);
  mram.write(cube);
  std::vector<pidcomm_request> all = {
      pidcomm::request::alltoall("1", 64, 0, 512, PIDCOMM_INT32),
      pidcomm::request::alltoall("1", 60, 0, 512, PIDCOMM_INT32),
  };
  CHECK_EQ(pidcomm_batch(cube.get(), all.data(), 2, nullptr, nullptr), +PIDCOMM_ERR_SIZE);
  CHECK(std::string(pidcomm_last_error()).find("request 1: ") == 0);
  all[1].size -= 8;
  CHECK_EQ(pidcomm_batch(cube.get(), all.data(), 2, nullptr, nullptr), +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_batch(cube.get(), nullptr, 1, nullptr, nullptr), +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_batch(nullptr, all.data(), 1, nullptr, nullptr), +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_batch(cube.get(), nullptr, 0, nullptr, nullptr), +PIDCOMM_OK);
  CHECK_EQ(mram.read(cube).difference(cube, mram), "");
}

}  // namespace
