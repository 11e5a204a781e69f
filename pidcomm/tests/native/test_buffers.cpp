// Buffers: their places in MRAM, and collectives on them through the C and the C++ interface.
#include <pidcomm/buffer.h>

#include <list>
#include <numeric>
#include <pidcomm/pidcomm.hpp>

#include "collective_cases.h"

namespace {

using namespace collective_cases;
using machine::check_refused;
using pidcomm::Buffer;
using Cube = pidcomm::Hypercube;

constexpr std::size_t kMramBytes = PIDCOMM_MRAM_BYTES;

std::size_t begin_of(const pidcomm_buffer *buffer) {
  return pidcomm_buffer_window(buffer) - PIDCOMM_MRAM_WINDOW;
}

TEST(Buffers_OfOneSet_DoNotOverlapAndFillMramFromItsEnd) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  Cube cube(set.get(), {8, 8}), other(set.get(), {64});
  const Buffer<float> a(cube, "a", 5);  // 20 bytes and 4 bytes of padding
  CHECK_EQ(begin_of(a.get()), kMramBytes - 24);
  CHECK_EQ(pidcomm_buffer_address(a.get()), PIDCOMM_MRAM_ADDRESS + kMramBytes - 24);
  {
    const Buffer<std::uint8_t> b(other, "b", 1);
    CHECK_EQ(begin_of(b.get()), kMramBytes - 32);
    const Buffer<std::int64_t> c(cube, "c", 2);
    CHECK_EQ(begin_of(c.get()), kMramBytes - 48);
  }
  const Buffer<std::int64_t> d(cube, "d", 1);  // in the place of b
  CHECK_EQ(begin_of(d.get()), kMramBytes - 32);
}

TEST(Buffers_FillTheGapsOfFreedBuffers) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  Cube cube(set.get(), {64});
  struct Range {
    pidcomm_buffer *buffer;
    std::size_t begin, end;
  };
  std::vector<Range> ranges;
  std::uint64_t random = 12345;
  for (int round = 0; round < 2000; ++round) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    if (random >> 62 == 0 && !ranges.empty()) {
      const std::size_t index = (random >> 20) % ranges.size();
      pidcomm_buffer_destroy(ranges[index].buffer);
      ranges.erase(ranges.begin() + static_cast<std::ptrdiff_t>(index));
      continue;
    }
    const std::size_t count = 1 + (random >> 30) % 300;
    pidcomm_buffer *buffer = nullptr;
    CHECK_EQ(pidcomm_buffer_create(cube.get(), "r", count, PIDCOMM_INT16, &buffer), +PIDCOMM_OK);
    const Range range = {buffer, begin_of(buffer), begin_of(buffer) + (count * 2 + 7) / 8 * 8};
    CHECK(range.begin % 8 == 0 && range.end <= kMramBytes);
    for (const Range &used : ranges) CHECK(range.end <= used.begin || used.end <= range.begin);
    ranges.push_back(range);
  }
  std::size_t used = 0, lowest = kMramBytes;
  for (const Range &range : ranges) {
    used += range.end - range.begin;
    lowest = std::min(lowest, range.begin);
    pidcomm_buffer_destroy(range.buffer);
  }
  CHECK(kMramBytes - lowest < 2 * used);  // gaps are used again
}

TEST(Buffers_OfOverlappingSets_DoNotOverlapOnACommonRank) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  struct dpu_set_t both = set.get(), rank;
  std::vector<struct dpu_set_t> sets = {both};
  DPU_RANK_FOREACH(both, rank) sets.push_back(rank);
  std::list<Cube> all;
  for (const struct dpu_set_t &each : sets)
    all.emplace_back(each, std::vector<std::uint32_t>{all.empty() ? 128u : 64u});
  struct Range {
    pidcomm_buffer *buffer;
    std::size_t cube, begin, end;
  };
  std::vector<Range> ranges;
  std::uint64_t random = 777;
  for (int round = 0; round < 3000; ++round) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    if (random >> 61 < 3 && !ranges.empty()) {
      const std::size_t index = (random >> 20) % ranges.size();
      pidcomm_buffer_destroy(ranges[index].buffer);
      ranges.erase(ranges.begin() + static_cast<std::ptrdiff_t>(index));
      continue;
    }
    const std::size_t cube = (random >> 40) % all.size(), bytes = 8 * (1 + (random >> 30) % 600);
    pidcomm_buffer *buffer = nullptr;
    CHECK_EQ(pidcomm_buffer_create(std::next(all.begin(), static_cast<std::ptrdiff_t>(cube))->get(),
                                   "r", bytes, PIDCOMM_UINT8, &buffer),
             +PIDCOMM_OK);
    const Range range = {buffer, cube, begin_of(buffer), begin_of(buffer) + bytes};
    for (const Range &used : ranges) {
      const bool shares = used.cube == cube || used.cube == 0 || cube == 0;
      CHECK(!shares || range.end <= used.begin || used.end <= range.begin);
    }
    ranges.push_back(range);
  }
  for (const Range &range : ranges) pidcomm_buffer_destroy(range.buffer);
}

TEST(Buffers_OutOfMram_NameTheOtherBuffers) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(1), elsewhere = DpuSet::of_ranks(1);
  Cube cube(set.get(), {64}), apart(elsewhere.get(), {64});
  const Buffer<std::uint8_t> large(cube, "large", kMramBytes - 1024), small(cube, "small", 512);
  const Buffer<std::uint8_t> on_another_rank(apart, "apart", kMramBytes);
  pidcomm_buffer *buffer = large.get();
  check_refused(pidcomm_buffer_create(cube.get(), "next", 520, PIDCOMM_UINT8, &buffer),
                PIDCOMM_ERR_MEMORY,
                "buffer next needs 520 bytes of MRAM per PE; the largest free part has 512 of the "
                "67108864 bytes: the variables of the loaded program end at byte 0, large has "
                "67107840, small has 512");
  CHECK(buffer == nullptr);
  check_refused(pidcomm_buffer_create(cube.get(), "next", SIZE_MAX, PIDCOMM_INT64, &buffer),
                PIDCOMM_ERR_MEMORY, "largest free part has 512");
  const Buffer<std::uint8_t> last(cube, "last", 512);
  CHECK_EQ(begin_of(last.get()), std::size_t{0});
}

/// Runs a case on buffers, and compares with the oracle.
void check_on_buffers(const Case &c) {
  const verify::Rows in = verify::rows_before(c.problem), out = verify::rows_after(c.problem);
  const DpuSet set = DpuSet::of_ranks(ranks_for(c.problem.axis_len));
  Cube cube(set.get(), c.problem.axis_len);
  const std::size_t element = verify::element_bytes(c.problem.type);
  const auto create = [&](const char *name, const verify::Rows &rows) {
    pidcomm_buffer *buffer = nullptr;
    if (rows.at_pes)
      CHECK_EQ(pidcomm_buffer_create(cube.get(), name, rows.row_bytes / element, c.problem.type,
                                     &buffer),
               +PIDCOMM_OK);
    return buffer;
  };
  pidcomm_buffer *const from = create("from", in), *const to = create("to", out);
  Bytes before(in.bytes()), after(out.bytes());
  verify::fill(c.fill, c.problem.type, c.problem.op, c.seed, in.row_bytes, before);
  if (in.at_pes)
    CHECK_EQ(pidcomm_buffer_write(cube.get(), from, before.data(), before.size()), +PIDCOMM_OK);
  pidcomm_request request = PIDCOMM_REQUEST_INITIALIZER;
  CHECK_EQ(pidcomm_buffer_request(cube.get(), c.problem.collective, c.problem.mask.c_str(), from,
                                  to, c.problem.op, &request),
           +PIDCOMM_OK);
  CHECK_EQ(request.bytes, c.problem.bytes);
  if (!in.at_pes) request.host = before.data(), request.host_bytes = before.size();
  if (!out.at_pes) request.host = after.data(), request.host_bytes = after.size();
  const int status = pidcomm_run(cube.get(), &request, &c.options, nullptr);
  if (status != PIDCOMM_OK) machine::fail(pidcomm_last_error());
  if (out.at_pes)
    CHECK_EQ(pidcomm_buffer_read(cube.get(), to, after.data(), after.size()), +PIDCOMM_OK);
  const verify::Verdict verdict = verify::compare(
      c.problem.type, out.row_bytes, after, verify::expected(c.problem, before), c.takes_op());
  if (verdict.wrong != 0) machine::fail(verdict.first + " [" + machine::describe(c) + "]");
  pidcomm_buffer_destroy(from);
  pidcomm_buffer_destroy(to);
}

TEST(Collectives_OnBuffers_AreThoseOfTheOracle) {
  machine::power_up(2);
  std::uint64_t seed = 1;
  for (const Axes &axis_len : {Axes{8, 4}, Axes{3, 5}, Axes{16, 6}}) {
    for (const char *mask : {"10", "01", "11"}) {
      const verify::Groups groups = verify::groups_of(axis_len, mask);
      for (int collective : kCollectives) {
        Case c = make_case(collective, axis_len, mask,
                           bytes_for_blocks(collective, groups.group_pes, 24),
                           {PIDCOMM_INT32, PIDCOMM_MAX}, ++seed);
        check_on_buffers(c);
      }
    }
  }
}

TEST(Collectives_OnCppBuffers_WorkInPlaceAndOnSlices) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  Cube cube(set.get(), {8, 8});
  Buffer<std::int32_t> grad(cube, "grad", 6), all(cube, "all", 48);
  std::vector<std::int32_t> rows(64 * 6);
  std::iota(rows.begin(), rows.end(), -100);
  grad.write(cube, rows);
  CHECK(grad.read(cube) == rows);
  cube.allgather("10", grad, all);
  const std::vector<std::int32_t> gathered = all.read(cube);
  for (std::size_t pe = 0; pe < 64; ++pe)
    for (std::size_t i = 0; i < 48; ++i) CHECK_EQ(gathered[pe * 48 + i], rows[pe / 8 * 8 * 6 + i]);

  // In place: the contribution is at the start of the buffer.
  all.slice(0, 6).write(cube, rows);
  cube.allgather("10", all.slice(0, 6), all);
  CHECK(all.read(cube) == gathered);

  cube.allreduce("01", grad, grad, PIDCOMM_SUM);
  const std::vector<std::int32_t> sums = grad.read(cube);
  for (std::size_t pe = 0; pe < 64; ++pe)
    for (std::size_t i = 0; i < 6; ++i) {
      std::int32_t sum = 0;
      for (std::size_t y = 0; y < 8; ++y) sum += rows[(y * 8 + pe % 8) * 6 + i];
      CHECK_EQ(sums[pe * 6 + i], sum);
    }

  std::vector<std::int32_t> host(8 * 6, 7);
  cube.broadcast("10", host.data(), host.size() * 4, grad);
  CHECK(grad.read(cube) == std::vector<std::int32_t>(64 * 6, 7));
  pidcomm_request request = cube.buffer_request(PIDCOMM_REDUCE, "10", grad.get(), nullptr,
                                                PIDCOMM_SUM, host.data(), host.size() * 4);
  cube.irun(request).wait();
  CHECK(host == std::vector<std::int32_t>(8 * 6, 56));
}

TEST(Buffers_WhoseBytesAreNoWords_HavePadding) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  Cube cube(set.get(), {8, 8});
  Buffer<std::int16_t> three(cube, "three", 3);
  std::vector<std::int16_t> rows(64 * 3);
  std::iota(rows.begin(), rows.end(), std::int16_t{0});
  three.write(cube, rows);
  CHECK(three.read(cube) == rows);
  cube.allreduce("11", three, three, PIDCOMM_MAX);
  const std::vector<std::int16_t> largest = three.read(cube);
  CHECK_EQ(largest[0], std::int16_t{189});
  CHECK_EQ(largest[191], std::int16_t{191});

  // Blocks follow each other without padding.
  Buffer<std::int16_t> all(cube, "all", 24);
  check_refused(pidcomm_buffer_run(cube.get(), PIDCOMM_ALLGATHER, "10", three.get(), all.get(), 0),
                PIDCOMM_ERR_SIZE, "needs bytes (48) divisible by 8 * 8");
  // A slice may not move elements of its neighbour.
  const Buffer<std::int16_t> part = all.slice(4, 2);
  check_refused(pidcomm_buffer_run(cube.get(), PIDCOMM_ALLREDUCE, "10", part.get(), part.get(), 0),
                PIDCOMM_ERR_WINDOW, "shares a word of 8 bytes with other elements");
}

TEST(Buffers_OfVariables_AreTheVariablesOfTheProgram) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  Cube cube(set.get(), {8, 8});
  pidcomm_buffer *buffer = nullptr;
  check_refused(pidcomm_buffer_of_variable(cube.get(), "variable", PIDCOMM_INT32, &buffer),
                PIDCOMM_ERR_DEVICE, "has no program");
  DPU_OK_OR_FAIL(dpu_load(set.get(), PIDCOMM_TEST_PROGRAM, nullptr));
  check_refused(pidcomm_buffer_of_variable(cube.get(), "absent", PIDCOMM_INT32, &buffer),
                PIDCOMM_ERR_ARGUMENT, "has no variable absent");
  const auto variable = Buffer<std::int32_t>::of_variable(cube, "variable");
  CHECK_EQ(variable.count(), std::size_t{1} << 14);
  std::size_t window = 0;
  CHECK_EQ(pidcomm_symbol_window(cube.get(), "variable", 0, 8, &window), +PIDCOMM_OK);
  CHECK_EQ(pidcomm_buffer_window(variable.get()), window);
  std::vector<std::int32_t> rows(64 << 14, 3);
  variable.write(cube, rows);
  cube.allreduce("11", variable, variable, PIDCOMM_SUM);
  CHECK(variable.read(cube) == std::vector<std::int32_t>(64 << 14, 192));
}

TEST(Buffers_KeepTheirBytesOverLoads_UnlessVariablesReachThem) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  Cube cube(set.get(), {8, 8});
  Buffer<std::int32_t> high(cube, "high", 2);
  // The variables of the one program end where `low` begins, those of the other behind it.
  const Buffer<std::uint8_t> most(cube, "most", kMramBytes - 8 - (1 << 16) - 8);
  const Buffer<std::int32_t> low(cube, "low", 2);
  std::vector<std::int32_t> rows(128, 5);
  high.write(cube, rows);
  low.write(cube, rows);
  DPU_OK_OR_FAIL(dpu_load(set.get(), PIDCOMM_TEST_PROGRAM, nullptr));
  CHECK(low.read(cube) == rows);
  for (const char *program : {PIDCOMM_OTHER_TEST_PROGRAM, PIDCOMM_TEST_PROGRAM}) {
    DPU_OK_OR_FAIL(dpu_load(set.get(), program, nullptr));
    CHECK(high.read(cube) == rows);
    check_refused(pidcomm_buffer_read(cube.get(), low.get(), rows.data(), rows.size() * 4),
                  PIDCOMM_ERR_WINDOW,
                  "buffer low begins at MRAM byte 65536, but the variables of a loaded program end "
                  "at 65544: the program has overwritten the buffer");
  }
}

TEST(Scratch_MayBeABuffer_AlsoBehindVariables) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  Cube cube(set.get(), {8, 8});
  DPU_OK_OR_FAIL(dpu_load(set.get(), PIDCOMM_TEST_PROGRAM, nullptr));
  const Buffer<std::int32_t> x(cube, "x", 640), y(cube, "y", 640), scratch(cube, "scratch", 640),
      last(cube, "last", 640);
  std::vector<std::int32_t> rows(64 * 640);
  std::iota(rows.begin(), rows.end(), 0);
  for (const auto *buffer : {&x, &y, &scratch, &last}) buffer->write(cube, rows);
  pidcomm_options options = {};
  options.technique = PIDCOMM_TECHNIQUE_PR_IM_CM;
  options.scratch_offset = pidcomm_buffer_window(scratch.get());
  cube.allreduce("10", x, y, PIDCOMM_MAX, options);
  CHECK(x.read(cube) == rows);
  CHECK(last.read(cube) == rows);
  const std::vector<std::int32_t> largest = y.read(cube);
  for (std::size_t i = 0; i < largest.size(); ++i)
    CHECK_EQ(largest[i], rows[(i / 640 / 8 * 8 + 7) * 640 + i % 640]);
}

TEST(Buffers_WithWrongArguments_AreRefused) {
  machine::power_up(2);
  const DpuSet set = DpuSet::of_ranks(1);
  Cube cube(set.get(), {8, 8});
  Buffer<std::int32_t> a(cube, "a", 16), b(cube, "b", 12);
  const Buffer<float> c(cube, "c", 16);
  pidcomm_buffer *buffer = nullptr;
  pidcomm_request request = PIDCOMM_REQUEST_INITIALIZER;
  std::vector<std::int32_t> rows(64 * 16);
  pidcomm_hypercube *const m = cube.get();
  check_refused(pidcomm_buffer_create(nullptr, "x", 1, PIDCOMM_INT8, &buffer), PIDCOMM_ERR_ARGUMENT,
                "cube is null");
  check_refused(pidcomm_buffer_create(m, nullptr, 1, PIDCOMM_INT8, &buffer), PIDCOMM_ERR_ARGUMENT,
                "name is null");
  check_refused(pidcomm_buffer_create(m, "x", 1, 4, &buffer), PIDCOMM_ERR_TYPE, "4");
  check_refused(pidcomm_buffer_create(m, "x", 0, PIDCOMM_INT8, &buffer), PIDCOMM_ERR_ARGUMENT,
                "0 elements");
  check_refused(pidcomm_buffer_create(m, "x", 1, PIDCOMM_INT8, nullptr), PIDCOMM_ERR_ARGUMENT,
                "buffer is null");
  check_refused(pidcomm_buffer_slice(a.get(), 15, 2, &buffer), PIDCOMM_ERR_WINDOW,
                "2 elements from element 15 passes the end of buffer a, which has 16");
  check_refused(pidcomm_buffer_write(m, a.get(), rows.data(), rows.size()), PIDCOMM_ERR_HOST_BUFFER,
                "host_bytes is 1024; buffer a has 64 rows of 16 elements");
  check_refused(pidcomm_buffer_read(m, nullptr, rows.data(), 0), PIDCOMM_ERR_ARGUMENT,
                "buffer is null");
  const auto run = [&](int collective, const char *mask, const pidcomm_buffer *in,
                       const pidcomm_buffer *out) {
    return pidcomm_buffer_run(m, collective, mask, in, out, PIDCOMM_SUM);
  };
  check_refused(run(PIDCOMM_ALLREDUCE, "10", a.get(), b.get()), PIDCOMM_ERR_SIZE,
                "buffer a of 16 elements has blocks of 16 elements, and buffer b of 12 has blocks "
                "of 12");
  check_refused(run(PIDCOMM_ALLREDUCE, "10", a.get(), c.get()), PIDCOMM_ERR_TYPE,
                "buffer a has elements of type int32, and buffer c of type float32");
  check_refused(run(PIDCOMM_ALLTOALL, "10", b.get(), b.get()), PIDCOMM_ERR_SIZE,
                "12 elements, which cannot be divided among the 8 members");
  check_refused(run(PIDCOMM_ALLREDUCE, "10", a.get(), nullptr), PIDCOMM_ERR_ARGUMENT,
                "out is null");
  check_refused(run(PIDCOMM_GATHER, "10", a.get(), a.get()), PIDCOMM_ERR_ARGUMENT,
                "out must be null");
  check_refused(run(PIDCOMM_ALLREDUCE, "1", a.get(), a.get()), PIDCOMM_ERR_MASK, "mask");
  const DpuSet elsewhere = DpuSet::of_ranks(1);
  Cube other(elsewhere.get(), {64});
  check_refused(pidcomm_buffer_read(other.get(), a.get(), rows.data(), rows.size() * 4),
                PIDCOMM_ERR_ARGUMENT, "buffer a is not on all ranks of the hypercube 64");
  check_refused(run(99, "10", a.get(), a.get()), PIDCOMM_ERR_ARGUMENT, "99");
  request.size = 0;
  check_refused(pidcomm_buffer_request(m, PIDCOMM_ALLREDUCE, "10", a.get(), a.get(), 0, &request),
                PIDCOMM_ERR_ARGUMENT, "request->size is 0");
  CHECK_EQ(pidcomm_buffer_count(nullptr) + pidcomm_buffer_window(nullptr) +
               pidcomm_buffer_address(nullptr),
           std::size_t{0});
  pidcomm_buffer_destroy(nullptr);
}

}  // namespace
