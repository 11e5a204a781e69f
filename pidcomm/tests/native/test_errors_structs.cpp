// Structs from programs of other versions, or without a size: which fields the library refuses,
// reads and writes.
#include <pidcomm/model.h>

#include <cstring>
#include <pidcomm/pidcomm.hpp>

#include "error_cases.h"

namespace {

using namespace error_cases;

const std::vector<int> kArgument = {PIDCOMM_ERR_ARGUMENT};

TEST(Sizes_ThatNoVersionHasAreRefused) {
  Fixture fixture;
  pidcomm_hypercube *const cube = fixture.cube.get();
  for (const std::size_t size :
       {std::size_t{0}, sizeof(std::size_t), std::size_t{5000}, SIZE_MAX}) {
    const std::string word = std::to_string(size);
    const auto check = [&](int status, const char *what) {
      check_error(status, kArgument, {what, word}, what + (" of " + word));
      fixture.unchanged.check();
    };
    pidcomm_request good = fixture.good(PIDCOMM_ALLTOALL), request = good;
    pidcomm_options options{};
    pidcomm_trace trace{};
    request.size = options.size = trace.size = size;
    check(pidcomm_run(cube, &request, nullptr, nullptr), "request");
    check(pidcomm_run(cube, &good, &options, nullptr), "options");
    check(pidcomm_run(cube, &good, nullptr, &trace), "trace");
    check(pidcomm_validate(cube, &request, nullptr), "request");
    check(pidcomm_validate(cube, &good, &options), "options");
    pidcomm_pending *pending = nullptr;
    check(pidcomm_irun(cube, &request, nullptr, &pending), "request");
    CHECK(pending == nullptr);

    const char *name = nullptr;
    pidcomm_machine machine{}, wrong{};
    pidcomm_prediction prediction{}, none{};
    wrong.size = none.size = size;
    const std::uint32_t axis_len[] = {8, 8};
    good.mask = "10";
    CHECK_EQ(pidcomm_machine_builtin(0, &name, &machine), +PIDCOMM_OK);
    check(pidcomm_machine_builtin(0, &name, &wrong), "machine");
    check(pidcomm_predict(2, axis_len, &good, nullptr, &wrong, &prediction), "machine");
    check(pidcomm_predict(2, axis_len, &good, nullptr, &machine, &none), "prediction");
    check(pidcomm_use_machine(&wrong), "machine");
  }
}

TEST(WaitWithAnInvalidTraceKeepsTheCall) {
  Fixture fixture;
  const pidcomm_request request = fixture.good(PIDCOMM_ALLTOALL);
  pidcomm_pending *pending = nullptr;
  CHECK_EQ(pidcomm_irun(fixture.cube.get(), &request, nullptr, &pending), +PIDCOMM_OK);
  pidcomm_trace trace{};
  trace.size = 0;
  check_error(pidcomm_wait(&pending, &trace), kArgument, {"trace"}, "wait");
  CHECK(pending != nullptr);
  trace.size = sizeof trace;
  CHECK_EQ(pidcomm_wait(&pending, &trace), +PIDCOMM_OK);
  CHECK(trace.mram_bytes_read != 0);
}

TEST(TraceOfACallThatFailsIsZero) {
  Fixture fixture;
  pidcomm_request request = fixture.good(PIDCOMM_ALLTOALL);
  request.bytes = 4;
  pidcomm_trace trace{};
  trace.threads = 7;
  trace.bytes_staged = 7;
  CHECK_EQ(pidcomm_run(fixture.cube.get(), &request, nullptr, &trace), +PIDCOMM_ERR_SIZE);
  CHECK_EQ(trace.threads, 0);
  CHECK_EQ(trace.bytes_staged, 0u);
  CHECK_EQ(trace.size, sizeof trace);
}

TEST(UnknownFieldIsRefusedUnlessItIsZero) {
  Fixture fixture;
  struct {
    pidcomm_request request;
    std::uint64_t added;
  } later{fixture.good(PIDCOMM_ALLTOALL), 0};
  later.request.size = sizeof later;
  CHECK_EQ(pidcomm_run(fixture.cube.get(), &later.request, nullptr, nullptr), +PIDCOMM_OK);
  later.added = 1;
  check_error(pidcomm_run(fixture.cube.get(), &later.request, nullptr, nullptr), kArgument,
              {"request"}, "a field of a later version");
}

TEST(Cpp_DeducesTypesOfElements) {
  static_assert(pidcomm::type_of<pidcomm_float16>() == PIDCOMM_FLOAT16 &&
                pidcomm::type_of<pidcomm_bfloat16>() == PIDCOMM_BFLOAT16);
  static_assert(pidcomm::type_of<float>() == PIDCOMM_FLOAT32 &&
                pidcomm::type_of<long>() == PIDCOMM_INT64);
  static_assert(pidcomm::type_of<long long>() == PIDCOMM_INT64 &&
                pidcomm::type_of<unsigned char>() == PIDCOMM_UINT8);
  Fixture fixture;
  pidcomm::Hypercube cube(fixture.set.get(), {8, 8});
  std::vector<float> x(64 * 2), sums(8 * 2);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  cube.scatter("00", 8, x.data(), 8 * 64, 0);
  cube.reduce("10", 8, 0, sums.data(), 8 * 8, PIDCOMM_SUM);
  for (std::size_t group = 0; group < 8; ++group)
    CHECK_EQ(sums[2 * group], static_cast<float>(8 * (16 * group) + 2 * 28));
  cube.allreduce<float>("10", 8, 0, 4096, PIDCOMM_MAX);
  cube.read(4096, 8, x.data());
  CHECK_EQ(x[0], 14.0f);
}

}  // namespace
