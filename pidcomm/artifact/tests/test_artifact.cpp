// Compares the published artifact's calls with plain loops of their definitions: every call, shapes
// with a first axis of 2, 4, 8 and more PEs, every axis mask, element sizes, windows and host
// layouts. Also tests the errors of the calls.
#include <dpu_program.h>

#include "artifact_machine.h"

namespace {

using namespace artifact_machine;

const std::vector<Axes> kShapes = {{8, 8, 1}, {16, 2, 4}, {8, 2, 3},  {24, 2, 2},
                                   {4, 4, 4}, {2, 8, 4},  {2, 2, 16}, {4, 2, 4, 2}};

/// Fails unless the status is `status` and the sentence has all of `words`.
void check_refused(int got, int status, const std::vector<std::string> &words) {
  const std::string sentence = pidcomm_artifact_last_error();
  if (got != status)
    machine::fail("status " + std::to_string(got) + " instead of " + std::to_string(status) + ": " +
                  sentence);
  for (const std::string &word : words)
    if (sentence.find(word) == std::string::npos)
      machine::fail("no \"" + word + "\" in: " + sentence);
}

/// Host buffers of 8 interleaved lanes each; a guard follows each buffer.
class Buffers {
 public:
  Buffers(std::size_t count, std::size_t bytes, std::uint64_t seed) : bytes_(bytes) {
    for (std::size_t i = 0; i < count; ++i)
      buffers_.push_back(random_rows(1, bytes + 64, seed + i));
    for (Bytes &buffer : buffers_) pointers_.push_back(buffer.data());
    before_ = buffers_;
  }
  void **pointers() { return pointers_.data(); }
  std::vector<Bytes> &buffers() { return buffers_; }
  const std::vector<Bytes> &before() const { return before_; }

 private:
  std::size_t bytes_;
  std::vector<Bytes> buffers_, before_;
  std::vector<void *> pointers_;
};

}  // namespace

TEST(Collectives_MatchTheirDefinitionsInEveryWindow) {
  const DpuSet set = machine_of(kRanks);
  machine::Grid grid("collectives");
  std::uint64_t seed = 0;
  for (const Axes &axis_len : kShapes) {
    const Hypercube cube(set, axis_len);
    const Manager manager = manager_of(set.get(), axis_len);
    for (const std::string &comm : masks(axis_len.size())) {
      const std::size_t members = place_of(axis_len, comm, 0).members;
      for (const Call call :
           {Call::kAllToAll, Call::kReduceScatter, Call::kAllReduce, Call::kAllGather}) {
        for (const std::uint32_t size : {1u, 2u, 4u, 8u}) {
          for (const std::uint32_t op : {0u, 1u}) {
            const bool takes_size = call == Call::kReduceScatter || call == Call::kAllReduce;
            if ((!takes_size && size != 8) || (call != Call::kAllReduce && op != 0)) continue;
            const std::size_t total = members * 8 * (2 + ++seed % 2), start = kStart + 64;
            // disjoint windows, in place, partial overlaps in both directions
            for (const std::size_t target : {start + total + 8, start, start + 8, start - 8}) {
              grid.run([&] {
                run_case(cube, manager.get(), {call, comm, total, target, size, op}, start, seed);
              });
            }
          }
        }
      }
    }
  }
  grid.finish();
}

TEST(LargeBlocks_GoThroughTheBufferWhole) {
  const DpuSet set = machine_of(1);
  const Axes axis_len = {8, 8};
  const Hypercube cube(set, axis_len);
  const Manager manager = manager_of(set.get(), axis_len);
  const std::size_t total = 64 * 136;  // blocks of 136 bytes, which do not divide a run of lines
  for (const Call call :
       {Call::kAllToAll, Call::kReduceScatter, Call::kAllReduce, Call::kAllGather})
    run_case(cube, manager.get(), {call, "11", total, kStart + 72, 4, 0}, kStart, 5);
}

TEST(Gather_InterleavesTheWordsOf8LanesInOneBufferPerEntangledGroup) {
  const DpuSet set = machine_of(kRanks);
  for (const Axes &axis_len : kShapes) {
    const Hypercube cube(set, axis_len);
    const Manager manager = manager_of(set.get(), axis_len);
    for (const std::size_t total : {std::size_t{0}, std::size_t{8}, std::size_t{40}}) {
      Bytes rows = random_rows(cube.rows(), 64, 7);
      cube.write(kStart, 64, rows);
      Buffers host(product(axis_len) / 8, 8 * total, 100);
      ok(pidcomm_artifact_gather(manager.get(), std::string(axis_len.size(), '1').c_str(), total,
                                 kStart, 0, host.pointers()));
      for (std::size_t eg = 0; eg < host.buffers().size(); ++eg) {
        Bytes want = host.before()[eg];
        for (std::size_t lane = 0; lane < 8; ++lane)
          for (std::size_t word = 0; word < total / 8; ++word)
            std::memcpy(want.data() + word * 64 + lane * 8,
                        rows.data() + (eg * 8 + lane) * 64 + word * 8, 8);
        CHECK(host.buffers()[eg] == want);
      }
    }
  }
}

TEST(Scatter_TakesTheBuffersSortedByGroup) {
  const DpuSet set = machine_of(kRanks);
  for (const Axes &axis_len : kShapes) {
    if (axis_len[0] % 8 != 0) continue;
    const Hypercube cube(set, axis_len);
    const Manager manager = manager_of(set.get(), axis_len);
    Axes egs = axis_len;
    egs[0] /= 8;
    for (const std::string &comm : masks(axis_len.size())) {
      Bytes rows = random_rows(cube.rows(), 64, 8);
      cube.write(kStart, 64, rows);
      const std::size_t total = 40;
      Buffers host(product(egs), 8 * total, 200);
      for (std::size_t eg = 0; eg < product(egs); ++eg) {
        const Place place = place_of(egs, comm, eg);
        const Bytes &buffer = host.before()[place.group * place.members + place.member];
        for (std::size_t lane = 0; lane < 8; ++lane)
          for (std::size_t word = 0; word < total / 8; ++word)
            std::memcpy(rows.data() + (eg * 8 + lane) * 64 + word * 8,
                        buffer.data() + word * 64 + lane * 8, 8);
      }
      ok(pidcomm_artifact_scatter(manager.get(), comm.c_str(), total, kStart, 0, host.pointers()));
      CHECK(cube.read(kStart, 64) == rows);
      CHECK(host.buffers() == host.before());
    }
  }
}

TEST(Reduce_FillsOneBufferPerGroupOrPer8Groups) {
  const DpuSet set = machine_of(kRanks);
  machine::Grid grid("reduce");
  for (const Axes &axis_len : kShapes) {
    if (axis_len[0] % 8 != 0) continue;
    const Hypercube cube(set, axis_len);
    const Manager manager = manager_of(set.get(), axis_len);
    for (const std::string &comm : masks(axis_len.size())) {
      const std::vector<std::vector<std::size_t>> groups = groups_of(axis_len, comm);
      const std::size_t members = groups[0].size(), total = members * 24, block = total / members;
      for (const std::uint32_t size : {1u, 2u, 4u, 8u}) {
        grid.run([&] {
          Bytes rows = random_rows(cube.rows(), total, size);
          cube.write(kStart, total, rows);
          const bool selects_x = comm[0] == '1';
          Buffers host(selects_x ? groups.size() : groups.size() / 8, selects_x ? total : 8 * total,
                       300);
          std::vector<Bytes> want = host.before();
          for (std::size_t g = 0; g < groups.size(); ++g) {
            Bytes sum(rows.data() + groups[g][0] * total, rows.data() + (groups[g][0] + 1) * total);
            for (std::size_t m = 1; m < members; ++m)
              combine(sum.data(), rows.data() + groups[g][m] * total, total, size, false);
            for (std::size_t word = 0; word < total / 8; ++word) {
              const std::size_t owner = word * 8 / block,
                                in_block =
                                    word % (block / 8);  // owner: the member whose block it is
              const std::size_t to = selects_x
                                         ? owner / 8 * 8 * block + in_block * 64 + owner % 8 * 8
                                         : word * 64 + g % 8 * 8;
              std::memcpy(want[selects_x ? g : g / 8].data() + to, sum.data() + word * 8, 8);
            }
          }
          ok(pidcomm_artifact_reduce(manager.get(), comm.c_str(), total, kStart, 0, size,
                                     host.pointers()));
          CHECK(host.buffers() == want);
          CHECK(cube.read(kStart, total) == rows);
        });
      }
    }
  }
  grid.finish();
}

TEST(HostBuffers_AreFilledAndReadInPiecesToo) {
  const DpuSet set = machine_of(1);
  const Hypercube cube(set, {8, 8});
  const Manager manager = manager_of(set.get(), {8, 8});
  const std::size_t total = 768 << 10, piece = 512 << 10;  // 32 MiB are staged at a time
  Bytes rows = random_rows(64, total, 9);
  Buffers host(8, 8 * total, 400);
  cube.write(kStart, total, rows);
  ok(pidcomm_artifact_gather(manager.get(), "11", total, kStart, 0, host.pointers()));
  for (const std::size_t pe : {std::size_t{0}, std::size_t{13}, std::size_t{63}})
    for (const std::size_t byte : {std::size_t{0}, piece - 8, piece, total - 8})
      CHECK(std::memcmp(host.buffers()[pe / 8].data() + byte * 8 + pe % 8 * 8,
                        rows.data() + pe * total + byte, 8) == 0);
  Bytes nothing(rows.size());
  cube.write(kStart, total, nothing);
  ok(pidcomm_artifact_scatter(manager.get(), "10", total, kStart, 0, host.pointers()));
  CHECK(cube.read(kStart, total) == rows);
}

TEST(Broadcast_ReachesEveryPeOfTheSetAlsoOutsideTheHypercube) {
  const DpuSet set = machine_of(kRanks);
  const Hypercube cube(set, {8, 2});
  const Manager manager = manager_of(set.get(), {8, 2});
  Bytes rows = random_rows(cube.rows(), 256, 10);
  CHECK_EQ(cube.rows(), 128u);
  cube.write(kStart, 256, rows);
  const Bytes data = random_rows(1, 128, 11);
  ok(pidcomm_artifact_broadcast(manager.get(), 128, kStart + 64, data.data()));
  ok(pidcomm_artifact_broadcast(manager.get(), 0, kStart + 64, data.data()));
  for (std::size_t row = 0; row < 128; ++row)
    std::memcpy(rows.data() + row * 256 + 64, data.data(), 128);
  CHECK(cube.read(kStart, 256) == rows);
}

TEST(AllReduce_WithoutABufferRefusesPartialOverlap) {
  const DpuSet set = machine_of(1);
  const Manager manager = manager_of(set.get(), {8, 8});
  ok(pidcomm_artifact_all_reduce_unbuffered(manager.get(), "10", 64, kStart, kStart + 64, 4, 1));
  check_refused(
      pidcomm_artifact_all_reduce_unbuffered(manager.get(), "10", 64, kStart, kStart + 8, 4, 1),
      PIDCOMM_ERR_WINDOW, {"[4096, 4160)", "[4104, 4168)", "no buffer"});
}

TEST(InvalidArguments_AreErrorsBeforeAnythingMoves) {
  const DpuSet set = machine_of(1);
  const Axes axis_len = {8, 4, 2};
  const Hypercube cube(set, axis_len);
  const Manager manager = manager_of(set.get(), axis_len), flat = manager_of(set.get(), {4, 16}),
                odd = manager_of(set.get(), {3, 5});
  pidcomm_artifact_manager lost = *manager;
  lost.axis_len = nullptr;
  const auto *m = manager.get();
  const std::size_t row_bytes = 4096, end = machine::kMramBytes;
  Bytes near_start = random_rows(64, row_bytes, 12), near_end = random_rows(64, row_bytes, 13),
        buffer = random_rows(64, row_bytes, 14);
  cube.write(kStart, row_bytes, near_start);
  cube.write(end - row_bytes, row_bytes, near_end);
  cube.write(kStart + kBuffer, row_bytes, buffer);
  Buffers host(8, 8 * 64, 500);
  void **p = host.pointers();
  std::vector<void *> holes(p, p + 8);
  holes[5] = nullptr;
  const std::size_t s = kStart, t = kStart + 2048, b = kBuffer;

  check_refused(pidcomm_artifact_alltoall(nullptr, "100", 64, s, t, b), PIDCOMM_ERR_ARGUMENT,
                {"manager is null"});
  check_refused(pidcomm_artifact_alltoall(&lost, "100", 64, s, t, b), PIDCOMM_ERR_ARGUMENT,
                {"axis_len is null"});
  check_refused(pidcomm_artifact_alltoall(m, nullptr, 64, s, t, b), PIDCOMM_ERR_MASK, {});
  check_refused(pidcomm_artifact_alltoall(m, "10", 64, s, t, b), PIDCOMM_ERR_MASK, {"10"});
  check_refused(pidcomm_artifact_alltoall(m, "10x", 64, s, t, b), PIDCOMM_ERR_MASK, {"10x"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 68, s, t, b), PIDCOMM_ERR_SIZE, {"68"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 68, s, s + 8, b), PIDCOMM_ERR_SIZE, {"68"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s + 4, t, b), PIDCOMM_ERR_WINDOW, {"4100"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, s + 4, b), PIDCOMM_ERR_WINDOW,
                {"destination offset 4100"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, end - 56, b), PIDCOMM_ERR_WINDOW,
                {std::to_string(end - 56)});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, end - 64, end - 56, 64), PIDCOMM_ERR_WINDOW,
                {"overlap"});
  check_refused(pidcomm_artifact_reduce_scatter(m, "111", 4096, end - 4096, end - 8, 8 * kMiB, 4),
                PIDCOMM_ERR_WINDOW, {});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, end - 128, end - 120, 72),
                PIDCOMM_ERR_WINDOW, {std::to_string(end - 56)});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, s + 8, 0), PIDCOMM_ERR_WINDOW,
                {"start + 0 = [4096, 4160)", "must not overlap them"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, s + 8, 56), PIDCOMM_ERR_WINDOW,
                {"start + 56 = [4152, 4216)"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, s + 8, 64), PIDCOMM_ERR_WINDOW,
                {"start + 64 = [4160, 4224)"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, s + 8, end), PIDCOMM_ERR_WINDOW,
                {"alltoall: buffer window of 64 bytes at offset 67112960 from heap base 0 ends "
                 "past the 67108864 bytes of MRAM"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, s + 8, UINT32_MAX - 67),
                PIDCOMM_ERR_WINDOW, {"buffer offset 4028 "});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, s + 8, UINT32_MAX / 2 - 7),
                PIDCOMM_ERR_WINDOW, {"buffer window", "offset 2147487736", "ends past"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, s + 8, UINT32_MAX - 7),
                PIDCOMM_ERR_WINDOW, {"start + 4294967288 = [4088, 4152)", "must not overlap them"});
  // A buffer before both windows does not limit the end of the output.
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, end - 64, end - 56, UINT32_MAX - 4095),
                PIDCOMM_ERR_WINDOW,
                {"destination window of 64 bytes at offset 67108808", "ends past"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, s + 8, SIZE_MAX - 7), PIDCOMM_ERR_WINDOW,
                {"start + 18446744073709551608 = [4088, 4152)"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, s + 8, (std::size_t{1} << 32) + b),
                PIDCOMM_ERR_WINDOW, {"32 bits"});
  check_refused(pidcomm_artifact_alltoall(m, "100", SIZE_MAX - 7, s, s + 8, b), PIDCOMM_ERR_WINDOW,
                {});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, SIZE_MAX - 7, SIZE_MAX - 15, b),
                PIDCOMM_ERR_WINDOW, {});
  check_refused(pidcomm_artifact_reduce_scatter(m, "100", 64, s, t, b, 3), PIDCOMM_ERR_TYPE,
                {"size (3)"});
  check_refused(pidcomm_artifact_all_reduce(m, "100", 64, s, t, b, 0, 0), PIDCOMM_ERR_TYPE,
                {"size (0)"});
  check_refused(pidcomm_artifact_all_reduce(m, "100", 64, s, t, b, 4, 2), PIDCOMM_ERR_OP,
                {"reduce_type (2)", "1, the maximum"});
  check_refused(pidcomm_artifact_reduce(m, "100", 64, s, b, 5, p), PIDCOMM_ERR_TYPE, {"size (5)"});
  check_refused(pidcomm_artifact_reduce(m, "100", 72, s, b, 4, p), PIDCOMM_ERR_SIZE,
                {"72", "8 PEs"});
  check_refused(pidcomm_artifact_reduce(m, "100", 64, s, b, 4, nullptr), PIDCOMM_ERR_ARGUMENT,
                {"host is null"});
  check_refused(pidcomm_artifact_reduce(m, "100", 64, s, b, 4, holes.data()),
                PIDCOMM_ERR_HOST_BUFFER, {"5 of 8"});
  check_refused(pidcomm_artifact_reduce(flat.get(), "10", 64, s, b, 4, p), PIDCOMM_ERR_SHAPE,
                {"first axis (4)", "multiple of 8"});
  check_refused(pidcomm_artifact_scatter(flat.get(), "10", 64, s, b, p), PIDCOMM_ERR_SHAPE,
                {"first axis (4)", "multiple of 8"});
  check_refused(pidcomm_artifact_scatter(m, "100", 64, s, b, holes.data()), PIDCOMM_ERR_HOST_BUFFER,
                {"5 of 8"});
  check_refused(pidcomm_artifact_scatter(m, "100", 64, end - 56, b, p), PIDCOMM_ERR_WINDOW,
                {"ends past"});
  check_refused(pidcomm_artifact_gather(odd.get(), "10", 64, s, b, p), PIDCOMM_ERR_SHAPE,
                {"15", "multiple of 8"});
  check_refused(pidcomm_artifact_gather(m, "10", 64, s, b, p), PIDCOMM_ERR_MASK, {"10"});
  check_refused(pidcomm_artifact_gather(m, "100", 60, s, b, p), PIDCOMM_ERR_SIZE, {"60"});
  check_refused(pidcomm_artifact_gather(m, "100", 64, s + 1, b, p), PIDCOMM_ERR_WINDOW, {"4097"});
  check_refused(pidcomm_artifact_gather(m, "100", 64, SIZE_MAX - 7, b, p), PIDCOMM_ERR_WINDOW,
                {"ends past"});
  check_refused(pidcomm_artifact_gather(m, "100", SIZE_MAX - 7, s, b, p), PIDCOMM_ERR_WINDOW,
                {"ends past"});
  check_refused(pidcomm_artifact_gather(m, "100", 64, s, b, holes.data()), PIDCOMM_ERR_HOST_BUFFER,
                {"5 of 8"});
  check_refused(pidcomm_artifact_broadcast(nullptr, 64, t, p[0]), PIDCOMM_ERR_ARGUMENT,
                {"manager is null"});
  check_refused(pidcomm_artifact_broadcast(m, 64, t, nullptr), PIDCOMM_ERR_ARGUMENT,
                {"data is null"});
  check_refused(pidcomm_artifact_broadcast(m, 64, end - 56, p[0]), PIDCOMM_ERR_WINDOW,
                {"broadcast: destination window of 64 bytes at offset 67108808 from heap base 0 "
                 "ends past the 67108864 bytes of MRAM"});
  check_refused(pidcomm_artifact_broadcast(m, 60, t, p[0]), PIDCOMM_ERR_SIZE, {"60"});

  CHECK(cube.read(kStart, row_bytes) == near_start);
  CHECK(cube.read(end - row_bytes, row_bytes) == near_end);
  CHECK(cube.read(kStart + kBuffer, row_bytes) == buffer);
  CHECK(host.buffers() == host.before());
}

TEST(Windows_EndAtTheEndOfMramAlsoBehindAProgram) {
  const DpuSet set = machine_of(1);
  const Axes axis_len = {8, 8};
  const Hypercube cube(set, axis_len);
  const Manager manager = manager_of(set.get(), axis_len);
  DPU_OK_OR_FAIL(dpu_load(set.get(), PIDCOMM_TEST_PROGRAM, nullptr));
  struct dpu_symbol_t heap;
  DPU_OK_OR_FAIL(dpu_get_symbol(dpu_get_program(dpu_from_set(cube.dpu(0))),
                                DPU_MRAM_HEAP_POINTER_NAME, &heap));
  const std::size_t base = heap.address & (machine::kMramBytes - 1),
                    end = machine::kMramBytes - base, row_bytes = 8192;
  CHECK(base != 0);
  Bytes near_end = random_rows(64, row_bytes, 15), near_start = random_rows(64, row_bytes, 16);
  cube.write(end - row_bytes, row_bytes, near_end);
  cube.write(0, row_bytes, near_start);
  Buffers host(8, 8 * 64, 600);
  const auto sentence = [&](const std::string &window, std::size_t offset) {
    return window + " window of 64 bytes at offset " + std::to_string(offset) + " from heap base " +
           std::to_string(base) + " ends past the 67108864 bytes of MRAM";
  };
  const auto *m = manager.get();
  check_refused(pidcomm_artifact_broadcast(m, 64, end - 56, host.pointers()[0]), PIDCOMM_ERR_WINDOW,
                {sentence("broadcast: destination", end - 56)});
  check_refused(pidcomm_artifact_scatter(m, "10", 64, end - 56, 0, host.pointers()),
                PIDCOMM_ERR_WINDOW, {sentence("scatter: destination", end - 56)});
  check_refused(pidcomm_artifact_gather(m, "10", 64, end - 56, 0, host.pointers()),
                PIDCOMM_ERR_WINDOW, {sentence("gather: source", end - 56)});
  check_refused(pidcomm_artifact_reduce(m, "10", 64, end - 56, 0, 8, host.pointers()),
                PIDCOMM_ERR_WINDOW, {sentence("reduce: source", end - 56)});
  check_refused(pidcomm_artifact_alltoall(m, "10", 64, end - 1024, end - 1016, 968),
                PIDCOMM_ERR_WINDOW, {sentence("alltoall: buffer", end - 56)});
  check_refused(pidcomm_artifact_alltoall(m, "10", 64, end - 64, end - 56, UINT32_MAX - 4095),
                PIDCOMM_ERR_WINDOW, {sentence("alltoall: destination", end - 56)});
  CHECK(cube.read(end - row_bytes, row_bytes) == near_end);
  CHECK(cube.read(0, row_bytes) == near_start);
  CHECK(host.buffers() == host.before());
  ok(pidcomm_artifact_broadcast(m, 64, end - 64, host.pointers()[0]));
  for (std::size_t row = 0; row < 64; ++row)
    std::memcpy(near_end.data() + (row + 1) * row_bytes - 64, host.pointers()[0], 64);
  CHECK(cube.read(end - row_bytes, row_bytes) == near_end);
}

TEST(TheBuffer_MayBeBelowStartInArithmeticOf32Bits) {
  const DpuSet set = machine_of(1);
  const Axes axis_len = {8, 8};
  const Hypercube cube(set, axis_len);
  const Manager manager = manager_of(set.get(), axis_len);
  const std::size_t start = kStart + 512, total = 128;
  for (const std::size_t buffer : {std::size_t{0u - 256u}, SIZE_MAX - 255}) {
    for (const Call call :
         {Call::kAllToAll, Call::kReduceScatter, Call::kAllReduce, Call::kAllGather}) {
      const Case it{call, "10", total, start + 8, 8, 0};
      run_case(cube, manager.get(), it, start, 17, buffer);
    }
  }
}

TEST(Manager_IsOneBlockWithACopyOfTheLengths) {
  DpuSet set = machine_of(1);
  Axes axis_len = {8, 4, 2};
  const Manager manager = manager_of(set.get(), axis_len);
  axis_len = {1, 1, 1};
  CHECK_EQ(manager->dimension, 3u);
  CHECK_EQ(manager->axis_len[0] * 100 + manager->axis_len[1] * 10 + manager->axis_len[2], 842u);
  CHECK(manager->dpu_set.list.ranks == set.get().list.ranks);
  CHECK(pidcomm_artifact_init(set.get(), 3, nullptr) == nullptr);
  check_refused(PIDCOMM_ERR_ARGUMENT, PIDCOMM_ERR_ARGUMENT, {"axis_len is null"});
  const std::uint32_t large[2] = {64, 2};
  CHECK(pidcomm_artifact_init(set.get(), 2, large) == nullptr);
  check_refused(PIDCOMM_ERR_SHAPE, PIDCOMM_ERR_SHAPE, {"64x2", "128"});
  // A call reports a freed set, because the manager does not keep data of the set.
  set.free();
  check_refused(pidcomm_artifact_alltoall(manager.get(), "100", 64, 0, 64, 0), PIDCOMM_ERR_SET, {});
  check_refused(pidcomm_artifact_broadcast(manager.get(), 64, 0, large), PIDCOMM_ERR_SET, {});
}
