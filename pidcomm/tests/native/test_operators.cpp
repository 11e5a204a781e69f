// Scans, and reductions with operators of the program, against the oracle. One file, because all
// tests use the same definitions.
#include <pidcomm/operators.h>

#include <cmath>

#include "machine.h"

namespace {

using namespace machine;

constexpr std::size_t kSrc = 1 << 16, kDst = 1 << 20;

/// An operator under test, and its definition.
struct Operation {
  std::string name;
  verify::Fold fold;
  pidcomm_operator operation{};  // size 0: type and op
  int type = PIDCOMM_INT32, op = PIDCOMM_SUM;
};

template <class T>
T value_at(const std::uint8_t *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
Bytes bytes_of(T value) {
  Bytes bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// Multiplication of matrices {{1, a, c}, {0, 1, b}, {0, 0, 1}}: associative, not commutative.
struct Matrix {
  std::uint32_t a, b, c;
};
Matrix product(Matrix x, Matrix y) { return {x.a + y.a, x.b + y.b, x.c + y.c + x.a * y.b}; }

void multiply(void *partials, const void *elements, size_t count, const void *context) {
  auto *const into = static_cast<std::uint8_t *>(partials);
  const auto *const from = static_cast<const std::uint8_t *>(elements);
  if (context != nullptr) fail("the context is not null");
  for (size_t i = 0; i < count; ++i) {
    const Matrix value = product(value_at<Matrix>(into + i * sizeof(Matrix)),
                                 value_at<Matrix>(from + i * sizeof(Matrix)));
    std::memcpy(into + i * sizeof(Matrix), &value, sizeof value);
  }
}

Operation matrices() {
  static constexpr Matrix kOne{};
  Operation result{"matrices",
                   {sizeof(Matrix),
                    [](std::uint8_t *out, verify::Elements members) {
                      Matrix value = value_at<Matrix>(members[0]);
                      for (std::size_t m = 1; m < members.size(); ++m)
                        value = product(value, value_at<Matrix>(members[m]));
                      std::memcpy(out, &value, sizeof value);
                    },
                    bytes_of(kOne)}};
  result.operation.element_bytes = sizeof(Matrix);
  result.operation.combine = multiply;
  result.operation.identity = &kOne;
  return result;
}

std::string name_of(const char *operation, int type) {
  return std::string(operation) + " " + pidcomm_name(PIDCOMM_TABLE_TYPE, type);
}

/// The operators of PIDCOMM_OPS for every type, for scans.
std::vector<Operation> builtins() {
  std::vector<Operation> all;
#define TYPE_ROW(ENUM, type, ...)                                       \
  for (int op = 0; pidcomm_name(PIDCOMM_TABLE_OP, op) != nullptr; ++op) \
    if (verify::is_defined(op, type))                                   \
      all.push_back({name_of(pidcomm_name(PIDCOMM_TABLE_OP, op), type), \
                     verify::fold_of_op(op, type),                      \
                     {},                                                \
                     type,                                              \
                     op});
  PIDCOMM_TYPES(TYPE_ROW)
#undef TYPE_ROW
  return all;
}

Operation average(int type) {
  Operation result{name_of("average", type), verify::average(type), {}, type};
  CHECK_EQ(pidcomm_operator_avg(type, &result.operation), +PIDCOMM_OK);
  return result;
}

Operation scaled(int type, const double *factor) {
  Operation result{name_of("scaled", type), verify::scaled_sum(type, *factor), {}, type};
  CHECK_EQ(pidcomm_operator_scaled_sum(type, factor, &result.operation), +PIDCOMM_OK);
  return result;
}

/// Values and indices.
Operation place(int type, bool is_max) {
  Operation result{
      name_of(is_max ? "argmax" : "argmin", type), verify::place(type, is_max), {}, type};
  CHECK_EQ((is_max ? pidcomm_operator_argmax : pidcomm_operator_argmin)(type, &result.operation),
           +PIDCOMM_OK);
  return result;
}

/// Flips all bits of the results; the context points to the bytes of an element.
void flip(void *elements, const void *partials, size_t count, size_t, const void *context) {
  if (elements != partials) fail("the partial results are not the elements");
  auto *const bytes = static_cast<std::uint8_t *>(elements);
  for (size_t i = 0; i < count * *static_cast<const size_t *>(context); ++i) bytes[i] ^= 0xFF;
}

/// An operator of PIDCOMM_OPS whose results are flipped.
template <class T>
Operation flipped(int type, int op) {
  static constexpr size_t kSize = sizeof(T);
  static constexpr T kIdentity = 42;
  Operation result{name_of("flipped", type), verify::fold_of_op(op, type), {}, type, op};
  result.fold.identity = bytes_of(kIdentity);
  result.fold.reduce = [reduce = result.fold.reduce](std::uint8_t *out, verify::Elements members) {
    reduce(out, members);
    for (size_t i = 0; i < sizeof(T); ++i) out[i] ^= 0xFF;
  };
  result.operation.element_bytes = sizeof(T);
  result.operation.store = flip;
  result.operation.context = &kSize;
  result.operation.identity = &kIdentity;
  return result;
}

std::vector<Operation> flips() {
  return {flipped<std::uint8_t>(PIDCOMM_INT8, PIDCOMM_SUM),
          flipped<std::uint8_t>(PIDCOMM_UINT8, PIDCOMM_MAX),
          flipped<std::uint32_t>(PIDCOMM_INT32, PIDCOMM_XOR),
          flipped<std::uint64_t>(PIDCOMM_UINT64, PIDCOMM_MAX),
          flipped<std::uint16_t>(PIDCOMM_UINT16, PIDCOMM_SUM)};
}

constexpr double kFactor = 0.3;

std::vector<Operation> operations() {
  std::vector<Operation> all = {matrices()};
#define TYPE_ROW(ENUM, type, ...)            \
  all.push_back(average(type));              \
  all.push_back(place(type, type % 2 == 0)); \
  if (verify::is_float(type)) all.push_back(scaled(type, &kFactor));
  PIDCOMM_TYPES(TYPE_ROW)
#undef TYPE_ROW
  return all;
}

/// A call and where its rows are.
struct Call {
  int collective;
  std::string mask;
  std::size_t block_bytes;
  bool in_place;
};

bool is_scan(int collective) { return collective == PIDCOMM_SCAN || collective == PIDCOMM_EXSCAN; }

verify::Problem problem_of(const Operation &operation, const Call &call, const Axes &axes) {
  const std::size_t blocks =
      call.collective == PIDCOMM_REDUCE_SCATTER ? verify::groups_of(axes, call.mask).group_pes : 1;
  return {call.collective,
          axes,
          call.mask,
          blocks * call.block_bytes,
          operation.type,
          operation.op,
          call.collective == PIDCOMM_GATHER ? nullptr
                                            : std::make_shared<const verify::Fold>(operation.fold)};
}

/// Returns rows with random elements: all bits; places with few values, which are often equal; or
/// numbers whose results show the order of additions, where this order is the same for all
/// techniques.
Bytes random_rows(const Operation &operation, const verify::Problem &problem, std::uint64_t seed) {
  const verify::Rows shape = verify::rows_before(problem);
  Bytes rows(shape.bytes());
  const std::size_t element = operation.fold.element_bytes,
                    value = verify::element_bytes(operation.type);
  const bool is_place = operation.name.rfind("arg", 0) == 0;
  const bool is_ordered = is_scan(problem.collective) || operation.type == PIDCOMM_FLOAT16 ||
                          operation.type == PIDCOMM_BFLOAT16;
  verify::fill_distinct(seed, shape.row_bytes, rows);
  if (element == value && !rows.empty())
    verify::fill(
        is_ordered ? verify::Fill::kRounding : verify::fill_for(true, operation.type, operation.op),
        operation.type, operation.op, seed, shape.row_bytes, rows);
  for (std::size_t at = 0; is_place && at < rows.size(); at += element) {
    const std::uint8_t few[] = {0, 1, 0x80, 0xFF}, top = few[rows[at] % 4];
    std::memset(&rows[at], 0, element / 2);
    rows[at + value - 1] = top;
    rows[at + element / 2] %= 16;
    std::memset(&rows[at + element / 2 + 1], 0, element / 2 - 1);
  }
  return rows;
}

void check_call(const Hypercube &cube, const Operation &operation, const Call &call,
                const pidcomm_options &options, std::uint64_t seed, Run run = pidcomm_run) {
  const verify::Problem problem = problem_of(operation, call, cube.axis_len());
  const bool is_gather = call.collective == PIDCOMM_GATHER,
             is_to_host = is_gather || call.collective == PIDCOMM_REDUCE;
  const std::size_t in_bytes = problem.bytes;
  const std::size_t dst = call.in_place ? kSrc : kDst;
  Picture mram;
  mram.cover(kSrc, in_bytes);
  mram.cover(kDst, call.block_bytes);
  mram.poison(cube, seed);
  const Bytes in = random_rows(operation, problem, seed);
  mram.put(cube, kSrc, in_bytes, in);
  mram.write(cube);
  Bytes want = verify::expected(problem, in);
  if (is_gather)
    for (std::uint8_t &byte : want) byte ^= 0xFF;
  HostBuffer host(is_to_host ? want.size() : 0, 8, seed);
  pidcomm_request request{};
  request.collective = call.collective;
  request.mask = call.mask.c_str();
  request.bytes = in_bytes;
  request.src = kSrc;
  request.dst = dst;
  request.host = host.data();
  request.host_bytes = host.size();
  request.type = operation.type;
  request.op = operation.op;
  if (operation.operation.element_bytes != 0) request.operation = &operation.operation;
  pidcomm_trace trace{};
  const std::string where =
      " [" + operation.name + ", collective " + std::to_string(call.collective) + ", mask " +
      call.mask + ", block " + std::to_string(call.block_bytes) + ", isa " +
      std::to_string(options.isa) + ", technique " + std::to_string(options.technique) + ", seed " +
      std::to_string(seed) + (call.in_place ? ", in place]" : "]");
  if (run(cube.get(), &request, &options, &trace) != PIDCOMM_OK) fail(pidcomm_last_error() + where);
  if (is_to_host)
    CHECK(host.content() == want && host.is_unchanged_around());
  else
    mram.put(cube, dst, call.block_bytes, want);
  const std::string difference = mram.read(cube).difference(cube, mram);
  if (!difference.empty()) fail(difference + where);
  if (trace.technique != PIDCOMM_TECHNIQUE_TILE) return;
  if (options.isa == PIDCOMM_ISA_AUDIT) CHECK_EQ(audit_of(cube).lines_outside, 0u);
  if (cube.pes() % 8 != 0) return;
  if (call.collective != PIDCOMM_REDUCE_SCATTER || is_fast(cube.axis_len()))
    CHECK_EQ(trace.mram_bytes_read, cube.pes() * in_bytes);
  CHECK_EQ(trace.mram_bytes_written, is_to_host ? 0 : cube.pes() * call.block_bytes);
}

TEST(Operators_AreRightOnEveryShapeIsaAndCollective) {
  power_up(5, {{3, 2, 1}, {3, 5, 1}, {4, 0, 0}});
  const DpuSet set = DpuSet::of_ranks(5);
  Grid grid("operators");
  std::vector<Operation> own = operations();
  const std::vector<Operation> table = builtins(), more = flips();
  own.insert(own.end(), more.begin(), more.end());
  const std::vector<int> isas = available_isas();
  std::uint64_t seed = 0;
  for (const Axes &axes : {Axes{8, 8}, Axes{3, 5}, Axes{12, 11}, Axes{32, 8}, Axes{7}, Axes{2, 40},
                           Axes{5, 4, 3}, Axes{1}}) {
    const Hypercube cube(set, axes);
    for (const std::string &mask : masks_of(axes.size()))
      for (int collective : {+PIDCOMM_ALLREDUCE, +PIDCOMM_REDUCE_SCATTER, +PIDCOMM_REDUCE,
                             +PIDCOMM_SCAN, +PIDCOMM_EXSCAN})
        grid.run([&] {
          for (int round = 0; round < 2; ++round) {
            const std::uint64_t random = verify::mix(++seed);
            const int isa = isas[seed % isas.size()];
            const Operation &operation = is_scan(collective) && random % 2 == 0
                                             ? table[random / 2 % table.size()]
                                             : own[random / 2 % own.size()];
            const std::size_t unit = operation.fold.element_bytes == 12 ? 24 : 16;
            pidcomm_options options{};
            options.isa = isa;
            options.threads = static_cast<int>(1 + random / 256 % 3);
            options.technique = random / 1024 % 4 == 0   ? PIDCOMM_TECHNIQUE_CONVENTIONAL
                                : random / 1024 % 4 == 1 ? PIDCOMM_TECHNIQUE_PR_IM
                                                         : PIDCOMM_TECHNIQUE_TILE;
            if (options.technique == PIDCOMM_TECHNIQUE_PR_IM && !is_fast(axes))
              options.technique = PIDCOMM_TECHNIQUE_TILE;
            const std::size_t units[] = {1, 3, 40, 150, 700};
            const std::size_t most = cube.pes() <= 64 ? 5 : 4;
            check_call(cube, operation,
                       {collective, mask, unit * units[random / 4096 % most],
                        random / 65536 % 2 == 0 && collective != PIDCOMM_REDUCE},
                       options, seed, random / 131072 % 4 == 0 ? start_and_wait : pidcomm_run);
          }
        });
  }
  grid.finish();
}

TEST(Operators_WithoutCombineAreRightForAllLaneMasks) {
  power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  for (const Axes &axes : {Axes{2, 2, 2, 4}, Axes{2, 4, 4}, Axes{4, 3, 2}}) {
    const Hypercube cube(set, axes);
    for (const std::string &mask : masks_of(axes.size()))
      for (const Operation &operation : flips())
        for (int collective : {+PIDCOMM_ALLREDUCE, +PIDCOMM_REDUCE_SCATTER, +PIDCOMM_REDUCE})
          check_call(cube, operation, {collective, mask, 8 * 11, false}, {}, 7);
  }
}

TEST(Operators_OfGathersChangeEachElement) {
  power_up(3, {{1, 2, 1}});
  const DpuSet set = DpuSet::of_ranks(3);
  std::uint64_t seed = 0;
  for (const Axes &axes : {Axes{8, 8}, Axes{3, 5}, Axes{12, 11}, Axes{2, 4, 16}, Axes{7}}) {
    const Hypercube cube(set, axes);
    for (const std::string &mask : masks_of(axes.size()))
      for (const Operation &operation : flips())
        for (const int isa : available_isas())
          for (const int technique : {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_TECHNIQUE_CONVENTIONAL}) {
            pidcomm_options options{};
            options.isa = isa;
            options.technique = technique;
            options.threads = static_cast<int>(1 + ++seed % 3);
            const std::size_t words[] = {1, 8, 11, 150};
            check_call(cube, operation, {PIDCOMM_GATHER, mask, 8 * words[seed % 4], false}, options,
                       seed, seed % 5 == 0 ? start_and_wait : pidcomm_run);
          }
  }
}

TEST(Operators_SpecialValues) {
  power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {4, 2});
  pidcomm_operator operation{};
  const auto run_on = [&](const auto &rows, auto &result, int collective) {
    CHECK_EQ(pidcomm_write(cube.get(), 0, sizeof rows / 8, rows), +PIDCOMM_OK);
    pidcomm_request request{};
    request.collective = collective;
    request.mask = "10";
    request.bytes = sizeof rows / 8;
    request.dst = 4096;
    request.operation = &operation;
    CHECK_EQ(pidcomm_run(cube.get(), &request, nullptr, nullptr), +PIDCOMM_OK);
    CHECK_EQ(pidcomm_read(cube.get(), 4096, sizeof rows / 8, result), +PIDCOMM_OK);
  };
  // Means of 4 members: 2.5, 3.5, -2.5, and the largest numbers, whose sum has more than 64 bits.
  const std::int64_t whole[8][4] = {{1, 2, -1, INT64_MAX}, {2, 3, -2, INT64_MAX},
                                    {3, 4, -3, INT64_MAX}, {4, 5, -4, INT64_MAX},
                                    {INT64_MIN, 0, 0, 1},  {INT64_MIN, 0, 0, 1},
                                    {INT64_MIN, 0, 1, 0},  {INT64_MIN, INT64_MIN, 0, 0}};
  std::int64_t means[8][4];
  CHECK_EQ(pidcomm_operator_avg(PIDCOMM_INT64, &operation), +PIDCOMM_OK);
  run_on(whole, means, PIDCOMM_ALLREDUCE);
  const std::int64_t first[4] = {2, 4, -2, INT64_MAX}, second[4] = {INT64_MIN, INT64_MIN / 4, 0, 0};
  for (int pe = 0; pe < 8; ++pe)
    CHECK(std::memcmp(means[pe], pe < 4 ? first : second, sizeof first) == 0);

  struct Place {
    float value;
    std::uint32_t index;
  };
  const Place places[8][2] = {{{1, 5}, {2, 0}},    {{NAN, 9}, {2, 1}},   {{NAN, 8}, {3, 2}},
                              {{0, 1}, {3, 3}},    {{-0.0f, 7}, {1, 0}}, {{0.0f, 6}, {1, 1}},
                              {{0.0f, 8}, {1, 2}}, {{5, 0}, {1, 3}}};
  Place best[8][2];
  CHECK_EQ(pidcomm_operator_argmin(PIDCOMM_FLOAT32, &operation), +PIDCOMM_OK);
  run_on(places, best, PIDCOMM_ALLREDUCE);
  CHECK(std::isnan(best[0][0].value) && best[0][0].index == 8);
  CHECK(best[3][1].value == 2 && best[3][1].index == 0);
  CHECK(best[4][0].value == 0 && best[4][0].index == 6);
  CHECK(best[7][1].value == 1 && best[7][1].index == 0);
  run_on(places, best, PIDCOMM_EXSCAN);
  CHECK(std::isinf(best[0][0].value) && best[0][0].index == ~0u);
  CHECK(best[2][1].value == 2 && best[2][1].index == 0);
}

TEST(Operators_InTheOrderOfDpuForeach) {
  power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const Hypercube holder(set, {8, 16});
  const Operation operation = matrices();
  for (const Axes &axes : {Axes{8, 16}, Axes{16, 8}, Axes{128}, Axes{4, 2, 16}}) {
    pidcomm_hypercube *cube = nullptr;
    CHECK_EQ(pidcomm_hypercube_create(
                 set.get(), static_cast<std::uint32_t>(axes.size()) | PIDCOMM_FOREACH_ORDER,
                 axes.data(), &cube),
             +PIDCOMM_OK);
    for (const std::string &mask : masks_of(axes.size()))
      for (int collective :
           {+PIDCOMM_ALLREDUCE, +PIDCOMM_REDUCE_SCATTER, +PIDCOMM_SCAN, +PIDCOMM_EXSCAN})
        for (int technique : {+PIDCOMM_TECHNIQUE_TILE, +PIDCOMM_TECHNIQUE_CONVENTIONAL}) {
          const verify::Problem problem =
              problem_of(operation, {collective, mask, 48, false}, axes);
          const std::size_t row = problem.bytes;
          const Bytes in = random_rows(operation, problem, row);
          Bytes out(128 * 48);
          CHECK_EQ(pidcomm_write(cube, 0, row, in.data()), +PIDCOMM_OK);
          pidcomm_request request{};
          request.collective = collective;
          request.mask = mask.c_str();
          request.bytes = row;
          request.dst = 1 << 16;
          request.operation = &operation.operation;
          pidcomm_options options{};
          options.technique = technique;
          CHECK_EQ(pidcomm_run(cube, &request, &options, nullptr), +PIDCOMM_OK);
          CHECK_EQ(pidcomm_read(cube, 1 << 16, 48, out.data()), +PIDCOMM_OK);
          CHECK(out == verify::expected(problem, in));
        }
    CHECK_EQ(pidcomm_hypercube_destroy(cube), +PIDCOMM_OK);
  }
}

/// Checks that a request is refused with a sentence that contains `part`, and that no byte moves.
void check_refused(const Hypercube &cube, const pidcomm_request &request, int technique, int status,
                   const std::string &part) {
  Picture mram;
  mram.cover(kSrc, 512);
  mram.cover(kDst, 512);
  mram.poison(cube, 5);
  mram.write(cube);
  pidcomm_options options{};
  options.technique = technique;
  machine::check_refused(run(cube, request, options), status, part);
  CHECK_EQ(mram.read(cube).difference(cube, mram), "");
}

TEST(Operators_RefuseWrongRequests) {
  power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8});
  const pidcomm_operator right = matrices().operation;
  const auto request_with = [](const pidcomm_operator &operation, int collective) {
    pidcomm_request request{};
    request.collective = collective;
    request.mask = "1";
    request.bytes = 192;
    request.src = kSrc;
    request.dst = kDst;
    request.type = PIDCOMM_FLOAT64;
    request.operation = &operation;
    return request;
  };
  const auto refuse = [&](auto change, const char *part) {
    pidcomm_operator operation = right;
    change(operation);
    check_refused(cube, request_with(operation, PIDCOMM_EXSCAN), PIDCOMM_TECHNIQUE_DEFAULT,
                  PIDCOMM_ERR_ARGUMENT, part);
  };
  refuse([](auto &o) { o.size = 8; }, "size is 8");
  refuse([](auto &o) { o.element_bytes = 0; }, "element_bytes is 0");
  refuse([](auto &o) { o.element_bytes = 4097; }, "element_bytes is 4097");
  refuse([](auto &o) { o.partial_bytes = 4097; }, "partial_bytes is 4097");
  refuse([](auto &o) { o.partial_bytes = 24; }, "load is null");
  refuse([](auto &o) { o.load = o.combine; }, "load must be null");
  refuse([](auto &o) { o.combine = nullptr; }, "store is null");
  refuse([](auto &o) { o.combine = nullptr, o.partial_bytes = 24; }, "partial_bytes (24)");
  refuse([](auto &o) { CHECK_EQ(pidcomm_operator_avg(PIDCOMM_FLOAT32, &o), +PIDCOMM_OK); },
         "8 bytes of float64");
  refuse([](auto &o) { o.identity = nullptr; }, "identity is null");
  refuse([](auto &o) { o.element_bytes = 12, o.store = flip; }, "store must be null");
  pidcomm_request request = request_with(right, PIDCOMM_ALLTOALL);
  check_refused(cube, request, 0, PIDCOMM_ERR_ARGUMENT, "does not reduce");
  request.collective = 31;  // messages
  check_refused(cube, request, 0, PIDCOMM_ERR_ARGUMENT, "does not reduce");
  request = request_with(right, PIDCOMM_ALLREDUCE);
  request.size = offsetof(pidcomm_request, operation);  // of a program without the field
  request.op = PIDCOMM_MAX;
  CHECK_EQ(run(cube, request, {}), +PIDCOMM_OK);
  request = request_with(right, PIDCOMM_ALLREDUCE);
  for (int technique : {+PIDCOMM_TECHNIQUE_RING, +PIDCOMM_TECHNIQUE_TREE})
    check_refused(cube, request, technique, PIDCOMM_ERR_OPTION, "use tile or conventional");
  request.bytes = 64;
  check_refused(cube, request, 0, PIDCOMM_ERR_SIZE, "multiple of 24");
  request = request_with(right, PIDCOMM_SCAN);
  request.type = 0;
  request.operation = nullptr;
  check_refused(cube, request, 0, PIDCOMM_ERR_TYPE, "type code 0");
  pidcomm_operator operation{};
  CHECK_EQ(pidcomm_operator_avg(99, &operation), +PIDCOMM_ERR_TYPE);
  CHECK_EQ(pidcomm_operator_scaled_sum(PIDCOMM_INT8, &kFactor, &operation), +PIDCOMM_ERR_TYPE);
  CHECK_EQ(pidcomm_operator_argmin(PIDCOMM_INT8, nullptr), +PIDCOMM_ERR_ARGUMENT);
}

TEST(Operators_PlansAreKeptByOperator) {
  power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8});
  Operation operation = matrices();
  Matrix identity{7, 8, 9};
  operation.operation.identity = &identity;
  for (std::uint32_t round = 0; round < 3; ++round) {  // the identity changes at its address
    identity.a = round;
    operation.fold.identity = bytes_of(identity);
    check_call(cube, operation, {PIDCOMM_EXSCAN, "1", 24, false}, {}, round);
  }
  double factor = 1;
  for (factor = 1; factor < 4; ++factor)
    check_call(cube, scaled(PIDCOMM_FLOAT32, &factor), {PIDCOMM_ALLREDUCE, "1", 16, false}, {}, 3);
  check_call(cube, builtins()[0], {PIDCOMM_SCAN, "1", 16, false}, {}, 4);
  check_call(cube, matrices(), {PIDCOMM_SCAN, "1", 48, false}, {}, 5);
}

}  // namespace
