// Every allocation of a call (with small effort: a sample) fails once: the call returns an error,
// changes nothing and leaves no rank open.
#include <dpuemu.h>
#include <pidcomm/pidcomm.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "effort.h"
#include "every_collective.h"
#include "harness.h"
#include "sdk_access.h"

namespace {

std::atomic<long> g_until_failure{-1};  // allocations that still succeed; negative: all do

void *allocate(std::size_t bytes, std::size_t alignment) {
  if (g_until_failure.load() >= 0 && g_until_failure.fetch_sub(1) == 0) throw std::bad_alloc();
  void *memory = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

constexpr std::uint32_t kPes = 128, kRowBytes = 512;
constexpr int kFewestAllocations = 4;  // of any call

struct Fixture {
  struct dpu_set_t set = {};
  pidcomm_hypercube *cube = nullptr;

  explicit Fixture(const std::vector<std::uint32_t> &axis_len) {
    CHECK_EQ(dpu_alloc(kPes, nullptr, &set), DPU_OK);
    CHECK_EQ(pidcomm_hypercube_create(set, static_cast<std::uint32_t>(axis_len.size()),
                                      axis_len.data(), &cube),
             +PIDCOMM_OK);
  }
  ~Fixture() {
    pidcomm_hypercube_destroy(cube);
    dpu_free(set);
  }
  std::vector<std::uint8_t> mram() const {
    std::vector<std::uint8_t> rows(pidcomm_pes(cube) * 2 * kRowBytes);
    CHECK_EQ(pidcomm_read(cube, 0, 2 * kRowBytes, rows.data()), +PIDCOMM_OK);
    return rows;
  }
};

/// Runs a request whose 1st, 2nd, ... allocation fails, until a run makes fewer allocations.
/// Returns the number of failed allocations. With small effort, it skips some of them. If PEs
/// reorder or there are many rounds, MRAM may have changed; then the error says so.
int fail_every_allocation(const Fixture &fixture, const pidcomm_request &request,
                          const pidcomm_options &options, std::vector<std::uint8_t> &host) {
  static int calls = 0;
  const int step = effort::is_small() ? effort::kSmallPart : 1,
            first = effort::is_small() ? calls++ % kFewestAllocations : 0;
  int failed = 0;
  for (int failures = first;; failures += step) {
    CHECK(failures < 10000);
    const std::vector<std::uint8_t> mram_before = fixture.mram(), host_before = host;
    pidcomm_trace trace{};
    g_until_failure = failures;
    const int status = pidcomm_run(fixture.cube, &request, &options, &trace);
    const bool has_failed = g_until_failure.exchange(-1) < 0;
    const std::string sentence = pidcomm_last_error();
    if (status == PIDCOMM_OK && !has_failed) return failed;
    ++failed;
    if (status == PIDCOMM_OK) continue;  // the call works without that allocation
    if (status != PIDCOMM_ERR_MEMORY) CHECK_EQ(status, +PIDCOMM_ERR_DEVICE);
    if (fixture.mram() != mram_before) {
      CHECK(options.scratch_offset != 0 || options.technique == PIDCOMM_TECHNIQUE_TREE);
      CHECK(sentence.find(options.scratch_offset != 0
                              ? "destination window are undefined"
                              : "destination window is undefined") != std::string::npos);
      CHECK_EQ(pidcomm_write(fixture.cube, 0, 2 * kRowBytes, mram_before.data()), +PIDCOMM_OK);
    }
    if (host != host_before) {
      CHECK(options.scratch_offset != 0);
      host = host_before;
    }
  }
}

}  // namespace

void *operator new(std::size_t bytes) { return allocate(bytes, 16); }
void *operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, const std::nothrow_t &) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

TEST(Collective_ThatCannotAllocateChangesNothingAndLeavesTheSetUsable) {
  if (is_over_sdk_access()) return;  // the allocations of a collective do not depend on it
  for (const std::vector<std::uint32_t> &axis_len :
       std::vector<std::vector<std::uint32_t>>{{8, 16}, {12, 10}}) {
    for (const int collective : kCollectives) {
      const Fixture fixture(axis_len);
      const std::uint32_t pes = pidcomm_pes(fixture.cube);
      std::vector<std::uint8_t> rows(pes * 2 * kRowBytes), host;
      for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i] = static_cast<std::uint8_t>(i * 131 + i / 251);
      CHECK_EQ(pidcomm_write(fixture.cube, 0, 2 * kRowBytes, rows.data()), +PIDCOMM_OK);

      std::uint32_t groups = 0, group_pes = 0;
      CHECK_EQ(pidcomm_groups(fixture.cube, "10", &groups, &group_pes), +PIDCOMM_OK);
      pidcomm_request request{};
      request.collective = collective;
      request.mask = "10";
      request.bytes = 8 * group_pes * 4;
      request.dst = kRowBytes;
      request.type = PIDCOMM_INT32;
      if (collective == PIDCOMM_SCATTER || collective == PIDCOMM_GATHER)
        host.resize(pes * request.bytes, 7);
      if (collective == PIDCOMM_REDUCE || collective == PIDCOMM_BROADCAST)
        host.resize(groups * request.bytes, 7);
      request.host = host.data();
      request.host_bytes = host.size();

      const pidcomm_options tile = {sizeof(pidcomm_options), PIDCOMM_TECHNIQUE_TILE, 0, 3, 0, 0};
      CHECK(fail_every_allocation(fixture, request, tile, host) >=
            (effort::is_small() ? 1 : kFewestAllocations));
      for (const int technique : {PIDCOMM_TECHNIQUE_PR, PIDCOMM_TECHNIQUE_PR_IM_CM})
        if (axis_len[0] == 8)
          fail_every_allocation(fixture, request,
                                {sizeof(pidcomm_options), technique, 0, 3, 0, 4 * kRowBytes}, host);
      if (collective == PIDCOMM_ALLREDUCE && axis_len[0] == 8) {
        fail_every_allocation(
            fixture, request,
            {sizeof(pidcomm_options), PIDCOMM_TECHNIQUE_RING, 0, 3, 0, 4 * kRowBytes}, host);
        fail_every_allocation(fixture, request,
                              {sizeof(pidcomm_options), PIDCOMM_TECHNIQUE_TREE, 0, 3, 0, 0}, host);
      }
      CHECK_EQ(dpu_free(fixture.set), DPU_OK);  // no rank is left open
    }
  }
}

TEST(Hypercube_ThatCannotBeAllocatedIsAnErrorAndNotACrash) {
  struct dpu_set_t set;
  CHECK_EQ(dpu_alloc(kPes, nullptr, &set), DPU_OK);
  const std::uint32_t axis_len[] = {8, 16};
  for (int failures = 0;; ++failures) {
    pidcomm_hypercube *cube = nullptr;
    g_until_failure = failures;
    const int status = pidcomm_hypercube_create(set, 2, axis_len, &cube);
    const bool has_failed = g_until_failure.exchange(-1) < 0;
    pidcomm_hypercube_destroy(cube);
    if (status == PIDCOMM_OK && !has_failed) break;
    if (status == PIDCOMM_OK) continue;  // the call works without that allocation
    if (status != PIDCOMM_ERR_MEMORY) CHECK_EQ(status, +PIDCOMM_ERR_DEVICE);
    CHECK(cube == nullptr);
    if (is_over_sdk_access())
      for (std::uint32_t r = 0; r < set.list.nr_ranks; ++r)
        CHECK(!pidcomm_test_is_open(set.list.ranks[r]));
  }
  CHECK_EQ(dpu_free(set), DPU_OK);
}
