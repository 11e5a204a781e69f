// The named functions and names of the C API, plans as JSON, and the streaming limit.
#include <set>

#include "collective_cases.h"

namespace {

using namespace collective_cases;

// ---- named functions

/// Calls the named function of the C API for a request.
int call_by_name(pidcomm_hypercube *m, const pidcomm_request &r) {
  switch (r.collective) {
    case PIDCOMM_ALLTOALL:
      return pidcomm_alltoall(m, r.mask, r.bytes, r.src, r.dst, r.type);
    case PIDCOMM_REDUCE_SCATTER:
      return pidcomm_reduce_scatter(m, r.mask, r.bytes, r.src, r.dst, r.type, r.op);
    case PIDCOMM_ALLREDUCE:
      return pidcomm_allreduce(m, r.mask, r.bytes, r.src, r.dst, r.type, r.op);
    case PIDCOMM_ALLGATHER:
      return pidcomm_allgather(m, r.mask, r.bytes, r.src, r.dst, r.type);
    case PIDCOMM_SCATTER:
      return pidcomm_scatter(m, r.mask, r.bytes, r.host, r.host_bytes, r.dst, r.type);
    case PIDCOMM_GATHER:
      return pidcomm_gather(m, r.mask, r.bytes, r.src, r.host, r.host_bytes, r.type);
    case PIDCOMM_REDUCE:
      return pidcomm_reduce(m, r.mask, r.bytes, r.src, r.host, r.host_bytes, r.type, r.op);
    case PIDCOMM_BROADCAST:
      return pidcomm_broadcast(m, r.mask, r.bytes, r.host, r.host_bytes, r.dst, r.type);
    default:
      return pidcomm_run(m, &r, nullptr, nullptr);
  }
}

TEST(NamedFunctions_EqualTheirRequests) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8, 4});
  for (int collective : kCollectives) {
    Case c = make_case(collective, cube.axis_len(), "01", bytes_for_blocks(collective, 4, 24),
                       {PIDCOMM_INT16, PIDCOMM_MAX}, 5);
    place(c, 256, false);
    const verify::Rows in = verify::rows_before(c.problem), out = verify::rows_after(c.problem);
    Bytes before(in.bytes()), host(in.at_pes ? (out.at_pes ? 0 : out.bytes()) : in.bytes());
    verify::fill_distinct(6, in.row_bytes, before);
    machine::Picture mram;
    mram.cover(c.src, 4096);
    mram.poison(cube, 1);
    if (in.at_pes)
      mram.put(cube, c.src, in.row_bytes, before);
    else
      host = before;
    mram.write(cube);
    const pidcomm_request request = {sizeof(pidcomm_request),
                                     collective,
                                     c.problem.mask.c_str(),
                                     c.problem.bytes,
                                     c.src,
                                     c.dst,
                                     host.data(),
                                     host.size(),
                                     c.problem.type,
                                     c.problem.op};
    CHECK_EQ(call_by_name(cube.get(), request), +PIDCOMM_OK);
    const Bytes want = verify::expected(c.problem, before);
    if (out.at_pes) mram.put(cube, c.dst, out.row_bytes, want);
    CHECK_EQ(mram.read(cube).difference(cube, mram), "");
    CHECK(host == (out.at_pes ? (in.at_pes ? Bytes{} : before) : want));
  }
}

TEST(Names_MatchTheTables) {
#define CHECK_NAME(table, code, name) \
  CHECK_EQ(std::string(pidcomm_name(PIDCOMM_TABLE_##table, code)), name);
#define COLLECTIVE_ROW(ENUM, code, name, ...) CHECK_NAME(COLLECTIVE, code, #name)
#define TYPE_ROW(ENUM, code, name, ...) CHECK_NAME(TYPE, code, #name)
#define OP_ROW(ENUM, code, name, ...) CHECK_NAME(OP, code, name)
#define TECHNIQUE_ROW(ENUM, code, name, ...) CHECK_NAME(TECHNIQUE, code, name)
#define ISA_ROW(ENUM, code, name, ...) CHECK_NAME(ISA, code, name)
#define COHERENCE_ROW(ENUM, code, name) CHECK_NAME(COHERENCE, code, name)
  PIDCOMM_COLLECTIVES(COLLECTIVE_ROW)
  PIDCOMM_TYPES(TYPE_ROW)
  PIDCOMM_OPS(OP_ROW)
  PIDCOMM_TECHNIQUES(TECHNIQUE_ROW)
  PIDCOMM_ISAS(ISA_ROW)
  PIDCOMM_COHERENCES(COHERENCE_ROW)
#undef CHECK_NAME
#undef COLLECTIVE_ROW
#undef TYPE_ROW
#undef OP_ROW
#undef TECHNIQUE_ROW
#undef ISA_ROW
#undef COHERENCE_ROW
  std::set<std::string> statuses;
#define STATUS_ROW(ENUM, code, ...)                           \
  CHECK(pidcomm_name(PIDCOMM_TABLE_STATUS, code) != nullptr); \
  CHECK(statuses.insert(pidcomm_name(PIDCOMM_TABLE_STATUS, code)).second);
  PIDCOMM_STATUSES(STATUS_ROW)
#undef STATUS_ROW
  for (int unknown : {-1, 99, 1 << 30}) {
    CHECK(pidcomm_name(PIDCOMM_TABLE_STATUS, unknown) == nullptr);
    CHECK(pidcomm_name(PIDCOMM_TABLE_COLLECTIVE, unknown) == nullptr);
    CHECK(pidcomm_name(PIDCOMM_TABLE_TYPE, unknown) == nullptr);
    CHECK(pidcomm_name(PIDCOMM_TABLE_OP, unknown) == nullptr);
    CHECK(pidcomm_name(PIDCOMM_TABLE_TECHNIQUE, unknown) == nullptr);
    CHECK(pidcomm_name(PIDCOMM_TABLE_ISA, unknown) == nullptr);
    CHECK(pidcomm_name(PIDCOMM_TABLE_COHERENCE, unknown) == nullptr);
    CHECK_EQ(pidcomm_isa_available(unknown), 0);
  }
  if (!effort::is_small())
    CHECK_EQ(pidcomm_isa_available(PIDCOMM_ISA_SCALAR),
             1);  // sanitizers build two instruction sets
  CHECK_EQ(pidcomm_isa_available(PIDCOMM_ISA_AUDIT), 1);
  CHECK_EQ(std::string(pidcomm_version()), std::to_string(PIDCOMM_VERSION_MAJOR) + "." +
                                               std::to_string(PIDCOMM_VERSION_MINOR) + "." +
                                               std::to_string(PIDCOMM_VERSION_PATCH));
}

// ---- host rows with a stride

TEST(HostStride_LeavesTheBytesBetweenRows) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  for (const Axes &shape : {Axes{8, 4}, Axes{3, 5}}) {
    const Hypercube cube(set, shape);
    for (int collective : {PIDCOMM_SCATTER, PIDCOMM_GATHER, PIDCOMM_REDUCE, PIDCOMM_BROADCAST})
      for (int technique : {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_TECHNIQUE_CONVENTIONAL}) {
        const verify::Problem problem = {collective, shape, "10", 72, PIDCOMM_INT32, PIDCOMM_SUM};
        const verify::Rows in = verify::rows_before(problem), out = verify::rows_after(problem),
                           &host = in.at_pes ? out : in;
        Bytes before(in.bytes()), got(out.bytes());
        verify::fill_distinct(7, in.row_bytes, before);
        const std::size_t stride = host.row_bytes + 40;
        Bytes rows(stride * (host.count - 1) + host.row_bytes, 0xEE), untouched = rows;
        pidcomm_request request{};
        request.collective = collective;
        request.mask = problem.mask.c_str();
        request.bytes = problem.bytes;
        request.host = rows.data();
        request.host_bytes = rows.size();
        request.host_stride = stride;
        request.type = problem.type;
        request.op = problem.op;
        pidcomm_options options{};
        options.technique = technique;
        if (in.at_pes)
          CHECK_EQ(pidcomm_write(cube.get(), 0, in.row_bytes, before.data()), +PIDCOMM_OK);
        else
          for (std::size_t row = 0; row < in.count; ++row)
            std::memcpy(&rows[row * stride], &before[row * in.row_bytes], in.row_bytes);
        CHECK_EQ(pidcomm_run(cube.get(), &request, &options, nullptr), +PIDCOMM_OK);
        if (out.at_pes)
          CHECK_EQ(pidcomm_read(cube.get(), 0, out.row_bytes, got.data()), +PIDCOMM_OK);
        else
          for (std::size_t row = 0; row < out.count; ++row) {
            std::memcpy(&got[row * out.row_bytes], &rows[row * stride], out.row_bytes);
            std::memset(&rows[row * stride], 0xEE, out.row_bytes);
          }
        CHECK(got == verify::expected(problem, before));
        if (!out.at_pes) CHECK(rows == untouched);
        for (const std::size_t wrong : {host.row_bytes - 8, host.row_bytes + 4}) {
          request.host_stride = wrong;
          CHECK_EQ(pidcomm_run(cube.get(), &request, &options, nullptr), +PIDCOMM_ERR_HOST_BUFFER);
          CHECK(std::string(pidcomm_last_error())
                    .find("host_stride (" + std::to_string(wrong) + ")") != std::string::npos);
        }
      }
  }
}

// ---- plans and limits

std::string plan_json(const Axes &axis_len, const pidcomm_request &request, int expand,
                      const pidcomm_options *options = nullptr) {
  std::size_t length = 0;
  const auto axes = static_cast<std::uint32_t>(axis_len.size());
  CHECK_EQ(pidcomm_plan_json(axes, axis_len.data(), &request, options, expand, nullptr, 0, &length),
           +PIDCOMM_OK);
  CHECK(length > 2);
  std::string json(length + 1, '#');
  std::size_t again = 0;
  CHECK_EQ(pidcomm_plan_json(axes, axis_len.data(), &request, options, expand, json.data(),
                             json.size(), &again),
           +PIDCOMM_OK);
  CHECK_EQ(again, length);
  CHECK_EQ(std::strlen(json.c_str()), length);
  json.resize(length);
  return json;
}

/// Are brackets and quotes balanced, outside and inside strings? (The Python tests parse it.)
bool is_balanced(const std::string &json) {
  std::string open;
  bool is_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (is_string) {
      if (c == '\\')
        ++i;
      else
        is_string = c != '"';
    } else if (c == '"') {
      is_string = true;
    } else if (c == '{' || c == '[') {
      open += c;
    } else if (c == '}' || c == ']') {
      if (open.empty() || open.back() != (c == '}' ? '{' : '[')) return false;
      open.pop_back();
    }
  }
  return open.empty() && !is_string;
}

TEST(PlanJson_DescribesEveryRequestWithoutADevice) {
  for (const Axes &axis_len : {Axes{8, 4}, Axes{2, 4, 4}, Axes{3, 5}, Axes{16, 3}, Axes{32, 32}})
    for (const std::string &mask : machine::masks_of(axis_len.size()))
      for (int collective : kCollectives)
        for (int expand : {0, 1}) {
          const std::uint32_t group_pes = verify::groups_of(axis_len, mask).group_pes;
          if (expand && group_pes > 64) continue;
          pidcomm_request request{};
          request.collective = collective;
          request.mask = mask.c_str();
          request.bytes = bytes_for_blocks(collective, group_pes, 16);
          request.dst = 1 << 20;
          request.type = PIDCOMM_INT32;
          const pidcomm_options tile = {sizeof tile, PIDCOMM_TECHNIQUE_TILE, 0, 0, 0, 0};
          const std::string json = plan_json(axis_len, request, expand, &tile);
          CHECK_EQ(json.front(), '{');
          CHECK_EQ(json.back(), '}');
          CHECK(is_balanced(json));
          CHECK(json.find(std::string("\"") + pidcomm_name(PIDCOMM_TABLE_COLLECTIVE, collective) +
                          "\"") != std::string::npos);
          CHECK(json.find("\"tile\"") != std::string::npos);
          if (expand) CHECK(json.size() > plan_json(axis_len, request, 0, &tile).size());
        }
}

TEST(PlanJson_WritesNoMoreThanTheCapacity) {
  const Axes axis_len = {8, 4};
  pidcomm_request request{};
  request.collective = PIDCOMM_ALLTOALL;
  request.mask = "10";
  request.bytes = 64;
  request.dst = 4096;
  request.type = PIDCOMM_INT32;
  const std::string whole = plan_json(axis_len, request, 0);
  for (std::size_t capacity : {std::size_t{1}, std::size_t{2}, whole.size() / 2, whole.size(),
                               whole.size() + 1, whole.size() + 9}) {
    std::string json(whole.size() + 16, '#');
    std::size_t length = 0;
    CHECK_EQ(
        pidcomm_plan_json(2, axis_len.data(), &request, nullptr, 0, json.data(), capacity, &length),
        +PIDCOMM_OK);
    CHECK_EQ(length, whole.size());
    const std::size_t kept = std::min(capacity - 1, whole.size());
    CHECK_EQ(json.substr(0, kept), whole.substr(0, kept));
    CHECK_EQ(json[kept], '\0');
    CHECK_EQ(json.substr(kept + 1), std::string(json.size() - kept - 1, '#'));
  }
}

TEST(PlanJson_HasASizeThatDoesNotGrowWithBytes) {
  const Axes axis_len = {32, 32};
  pidcomm_request request{};
  request.collective = PIDCOMM_ALLTOALL;
  request.mask = "10";
  request.type = PIDCOMM_INT32;
  request.dst = 32 << 20;
  request.bytes = 32 * 8;
  const std::size_t small = plan_json(axis_len, request, 0).size();
  request.bytes = 32 * 8 * 4096;
  CHECK(plan_json(axis_len, request, 0).size() < small + 200);  // numbers have more digits
  CHECK(small < 16384);
}

TEST(StreamLimit_CopiesOrStoresEveryWordAndReturnsTheBytesMoved) {
  machine::power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set,
                       {60});  // 7 whole entangled groups, and one with 4 PEs that the limit skips
  constexpr std::size_t kSrc = 8192 - 24, kDst = (1 << 20) + 40, kBytes = 3 * 8192 + 8, kGuard = 64;
  Bytes input(60 * kBytes), guarded(60 * (kBytes + 2 * kGuard)), output(guarded.size());
  for (std::size_t i = 0; i < input.size(); ++i)
    input[i] = static_cast<std::uint8_t>(verify::mix(i));
  for (std::size_t i = 0; i < guarded.size(); ++i)
    guarded[i] = static_cast<std::uint8_t>(verify::mix(~i));
#define PIDCOMM_ROW(ENUM, ...) PIDCOMM_COPY_ORDER_##ENUM,
  constexpr int kAllCopyOrders[] = {PIDCOMM_COPY_ORDERS(PIDCOMM_ROW)};
#undef PIDCOMM_ROW
  constexpr std::uint64_t kStoredBeat =
      0x0123456789ABCDEF;  // what the limit stores if it does not copy: byte l of a beat goes to
                           // lane l
  double seconds = 0;
  std::uint64_t bytes_moved = 0;
  CHECK_EQ(pidcomm_stream_limit(cube.get(), 0, 64, 64, 0, 64, nullptr, &seconds, &bytes_moved),
           +PIDCOMM_ERR_OPTION);
  for (int coherence : kBothPolicies) {
    for (int threads : {1, 2, 7}) {
      for (std::size_t bytes_read : {kBytes, kBytes / 16 * 8, std::size_t{0}})
        for (int copy_order : kAllCopyOrders) {
          CHECK_EQ(pidcomm_write(cube.get(), kSrc, kBytes, input.data()), +PIDCOMM_OK);
          CHECK_EQ(pidcomm_write(cube.get(), kDst - kGuard, kBytes + 2 * kGuard, guarded.data()),
                   +PIDCOMM_OK);
          const pidcomm_options options = {sizeof(pidcomm_options), 0, 0, threads, coherence, 0};
          CHECK_EQ(pidcomm_stream_limit(cube.get(), copy_order, bytes_read, kBytes, kSrc, kDst,
                                        &options, &seconds, &bytes_moved),
                   +PIDCOMM_OK);
          CHECK(seconds > 0);
          CHECK_EQ(bytes_moved, 56u * (bytes_read + kBytes));
          CHECK_EQ(pidcomm_read(cube.get(), kDst - kGuard, kBytes + 2 * kGuard, output.data()),
                   +PIDCOMM_OK);
          for (std::size_t pe = 0; pe < 60; ++pe) {
            const std::size_t row = pe * (kBytes + 2 * kGuard);
            for (std::size_t i = 0; i < kBytes + 2 * kGuard; ++i) {
              const bool is_inside = i >= kGuard && i < kGuard + kBytes && pe < 56;
              const std::uint8_t want =
                  !is_inside             ? guarded[row + i]
                  : bytes_read == kBytes ? input[pe * kBytes + i - kGuard]
                                         : static_cast<std::uint8_t>(kStoredBeat >> 8 * (pe % 8));
              if (output[row + i] != want)
                machine::fail("PE " + std::to_string(pe) + " byte " + std::to_string(i));
            }
          }
        }
    }
  }
}

}  // namespace
