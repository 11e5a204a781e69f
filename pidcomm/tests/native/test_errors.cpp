// Every bad argument of the C API: its status, a sentence with the offending values, and no changed
// byte. One file, so that a reader finds all errors of a function together.
#include <functional>

#include "error_cases.h"

namespace {

using namespace error_cases;

/// One way to break a request.
struct Breakage {
  const char *what;
  std::vector<int> collectives;  ///< empty: all
  std::vector<int> statuses;     ///< any of these is right
  std::vector<std::string> words;
  bool is_bytes_free;  ///< the error also holds with bytes = 0
  std::function<void(pidcomm_request &, pidcomm_options &)> apply;
};

/// Runs every breakage on each of its collectives, through pidcomm_run and, unless it concerns the
/// host buffer, pidcomm_plan_json.
void check_breakages(const std::vector<Breakage> &breakages, bool has_plan) {
  Fixture fixture;
  machine::Grid grid("errors");
  const Axes &axis_len = fixture.cube.axis_len();
  for (const Breakage &breakage : breakages)
    for (int collective = kFirst; collective <= kLast; ++collective) {
      const std::vector<int> &chosen = breakage.collectives;
      if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), collective) == chosen.end())
        continue;
      for (bool is_empty : {false, true}) {
        if (is_empty && !breakage.is_bytes_free) continue;
        grid.run([&] {
          pidcomm_request request = fixture.good(collective);
          pidcomm_options options{};
          if (is_empty) request.bytes = request.host_bytes = 0;
          breakage.apply(request, options);
          const std::string what = std::string(breakage.what) + ", " +
                                   pidcomm_name(PIDCOMM_TABLE_COLLECTIVE, collective) +
                                   (is_empty ? ", no bytes" : "");
          pidcomm_trace trace{};
          check_error(pidcomm_run(fixture.cube.get(), &request, &options, &trace),
                      breakage.statuses, breakage.words, what);
          const bool has_host = request.host != nullptr || request.host_bytes != 0;
          if (has_host || breakage.statuses[0] != PIDCOMM_ERR_HOST_BUFFER)
            check_error(pidcomm_validate(fixture.cube.get(), &request, &options), breakage.statuses,
                        breakage.words, what + ", validate");
          if (has_plan) {
            std::size_t length = 0;
            check_error(
                pidcomm_plan_json(3, axis_len.data(), &request, &options, 0, nullptr, 0, &length),
                breakage.statuses, breakage.words, what + ", plan");
          }
          fixture.unchanged.check();
        });
      }
    }
  grid.finish();
}

TEST(Validate_OfAValidRequestChangesNothing) {
  Fixture fixture;
  for (int collective = kFirst; collective <= kLast; ++collective) {
    const pidcomm_request request = fixture.good(collective);
    CHECK_EQ(pidcomm_validate(fixture.cube.get(), &request, nullptr), +PIDCOMM_OK);
  }
  fixture.unchanged.check();
}

TEST(ErrorTables_StartFromValidRequests) {
  Fixture fixture;
  for (int collective = kFirst; collective <= kLast; ++collective)
    for (std::size_t bytes : {Fixture::kBytes, std::size_t{0}}) {
      pidcomm_request request = fixture.good(collective);
      request.bytes = bytes;
      request.host_bytes = Fixture::host_bytes(collective, bytes);
      CHECK_EQ(pidcomm_run(fixture.cube.get(), &request, nullptr, nullptr), +PIDCOMM_OK);
      CHECK_EQ(std::string(pidcomm_last_error()), "");
    }
}

// ---- requests
// ------------------------------------------------------------------------------------------

TEST(Mask_MustBeOneZeroOrOnePerAxis) {
  const auto mask = [](const char *text) {
    return [text](pidcomm_request &r, pidcomm_options &) { r.mask = text; };
  };
  check_breakages(
      {
          {"mask null", {}, {PIDCOMM_ERR_MASK, PIDCOMM_ERR_ARGUMENT}, {}, true, mask(nullptr)},
          {"mask empty", {}, {PIDCOMM_ERR_MASK}, {"3"}, true, mask("")},
          {"mask short", {}, {PIDCOMM_ERR_MASK}, {"10", "3"}, true, mask("10")},
          {"mask long", {}, {PIDCOMM_ERR_MASK}, {"1010", "3"}, true, mask("1010")},
          {"mask with a letter", {}, {PIDCOMM_ERR_MASK}, {"1x1"}, true, mask("1x1")},
          {"mask with a two", {}, {PIDCOMM_ERR_MASK}, {"201"}, true, mask("201")},
          {"mask with a space", {}, {PIDCOMM_ERR_MASK}, {"1 1"}, true, mask("1 1")},
      },
      true);
}

TEST(Bytes_MustBeBlocksOfAMultipleOf8) {
  const std::vector<int> blocks = {PIDCOMM_ALLTOALL, PIDCOMM_REDUCE_SCATTER, PIDCOMM_ALLGATHER};
  const std::vector<int> wholes = {PIDCOMM_ALLREDUCE, PIDCOMM_SCATTER, PIDCOMM_GATHER,
                                   PIDCOMM_REDUCE, PIDCOMM_BROADCAST};
  const auto bytes = [](std::size_t n) {
    return [n](pidcomm_request &r, pidcomm_options &) {
      r.bytes = n;
      r.host_bytes = Fixture::host_bytes(r.collective, n);
    };
  };
  check_breakages(
      {
          {"no whole blocks", blocks, {PIDCOMM_ERR_SIZE}, {"520", "32"}, false, bytes(520)},
          {"blocks of 4 bytes", blocks, {PIDCOMM_ERR_SIZE}, {"128", "32"}, false, bytes(128)},
          {"blocks of 12 bytes", blocks, {PIDCOMM_ERR_SIZE}, {"384", "32"}, false, bytes(384)},
          {"one word in 32 blocks", blocks, {PIDCOMM_ERR_SIZE}, {"8", "32"}, false, bytes(8)},
          {"no whole words", wholes, {PIDCOMM_ERR_SIZE}, {"12"}, false, bytes(12)},
          {"one byte", {}, {PIDCOMM_ERR_SIZE}, {"1"}, false, bytes(1)},
      },
      true);
}

TEST(Windows_MustBeAlignedInsideMramAndApart) {
  const std::vector<int> sources = {PIDCOMM_ALLTOALL,  PIDCOMM_REDUCE_SCATTER, PIDCOMM_ALLREDUCE,
                                    PIDCOMM_ALLGATHER, PIDCOMM_GATHER,         PIDCOMM_REDUCE};
  const std::vector<int> targets = {PIDCOMM_ALLTOALL,  PIDCOMM_REDUCE_SCATTER, PIDCOMM_ALLREDUCE,
                                    PIDCOMM_ALLGATHER, PIDCOMM_SCATTER,        PIDCOMM_BROADCAST};
  const auto src = [](std::size_t at) {
    return [at](pidcomm_request &r, pidcomm_options &) { r.src = at; };
  };
  const auto dst = [](std::size_t at) {
    return [at](pidcomm_request &r, pidcomm_options &) { r.dst = at; };
  };
  const auto both = [](std::size_t s, std::size_t d) {
    return [s, d](pidcomm_request &r, pidcomm_options &) {
      r.src = s;
      r.dst = d;
    };
  };
  const auto bytes = [](std::size_t n) {
    return [n](pidcomm_request &r, pidcomm_options &) {
      r.bytes = n;
      r.host_bytes = Fixture::host_bytes(r.collective, n);
    };
  };
  const std::string end = std::to_string(machine::kMramBytes),
                    over = std::to_string(machine::kMramBytes + 8), huge = std::to_string(kHuge);
  constexpr std::size_t kIn = Fixture::kBytes, kBlock = Fixture::kBytes / 32;
  const std::vector<int> window = {PIDCOMM_ERR_WINDOW};
  // 2^63 bytes: adding an offset, multiplying by 2 (rows) or by 32 (parts) overflows.
  const std::vector<int> either = {PIDCOMM_ERR_WINDOW, PIDCOMM_ERR_HOST_BUFFER, PIDCOMM_ERR_SIZE};
  check_breakages(
      {
          {"src misaligned", sources, window, {"4100"}, true, src(4100)},
          {"src off by one", sources, window, {"4097"}, true, src(4097)},
          {"dst misaligned", targets, window, {std::to_string(kDst + 4)}, true, dst(kDst + 4)},
          {"src at the end of MRAM", sources, window, {end}, false, src(machine::kMramBytes)},
          {"dst at the end of MRAM", targets, window, {end}, false, dst(machine::kMramBytes)},
          {"src behind the end of MRAM",
           sources,
           window,
           {over},
           true,
           src(machine::kMramBytes + 8)},
          {"dst behind the end of MRAM",
           targets,
           window,
           {over},
           true,
           dst(machine::kMramBytes + 8)},
          {"src reaches past the end",
           sources,
           window,
           {std::to_string(machine::kMramBytes - 8)},
           false,
           src(machine::kMramBytes - 8)},
          {"dst reaches past the end",
           targets,
           window,
           {std::to_string(machine::kMramBytes - 8)},
           false,
           dst(machine::kMramBytes - 8)},
          {"src overflows", sources, window, {huge}, true, src(kHuge)},
          {"dst overflows", targets, window, {huge}, true, dst(kHuge)},
          {"bytes larger than MRAM",
           {},
           {PIDCOMM_ERR_WINDOW},
           {std::to_string(128 * kMiB)},
           false,
           bytes(128 * kMiB)},
          {"bytes overflow", {}, either, {}, false, bytes(SIZE_MAX / 256 * 256)},
          {"bytes overflow when doubled", {}, either, {}, false, bytes(std::size_t{1} << 63)},
          {"bytes overflow in 32 parts", {}, either, {}, false, bytes(std::size_t{1} << 59)},
          {"overlap by one word, dst behind",
           {PIDCOMM_ALLTOALL, PIDCOMM_ALLREDUCE, PIDCOMM_REDUCE_SCATTER},
           window,
           {std::to_string(kSrc), std::to_string(kSrc + kIn - 8)},
           false,
           both(kSrc, kSrc + kIn - 8)},
          {"overlap by one word, dst before",
           {PIDCOMM_ALLTOALL, PIDCOMM_ALLREDUCE, PIDCOMM_ALLGATHER},
           window,
           {std::to_string(kSrc), std::to_string(kSrc - kIn + 8)},
           false,
           both(kSrc, kSrc - kIn + 8)},
          {"shifted by one word",
           {PIDCOMM_ALLTOALL, PIDCOMM_ALLREDUCE, PIDCOMM_ALLGATHER, PIDCOMM_REDUCE_SCATTER},
           window,
           {std::to_string(kSrc)},
           false,
           both(kSrc, kSrc + 8)},
          {"result in block 1 of the source",
           {PIDCOMM_REDUCE_SCATTER},
           window,
           {std::to_string(kSrc + kBlock)},
           false,
           both(kSrc, kSrc + kBlock)},
          {"result reaches into block 0",
           {PIDCOMM_REDUCE_SCATTER},
           window,
           {std::to_string(kSrc - 8)},
           false,
           both(kSrc, kSrc - 8)},
          {"contribution in block 1 of the result",
           {PIDCOMM_ALLGATHER},
           window,
           {std::to_string(kSrc + kBlock)},
           false,
           both(kSrc + kBlock, kSrc)},
          {"contribution in the last block of the result",
           {PIDCOMM_ALLGATHER},
           window,
           {std::to_string(kSrc + kIn - kBlock)},
           false,
           both(kSrc + kIn - kBlock, kSrc)},
      },
      true);
}

TEST(Windows_ThatTouchButDoNotOverlapAreAllowed) {
  Fixture fixture;
  for (int collective :
       {PIDCOMM_ALLTOALL, PIDCOMM_REDUCE_SCATTER, PIDCOMM_ALLREDUCE, PIDCOMM_ALLGATHER}) {
    const std::size_t in = collective == PIDCOMM_ALLGATHER ? Fixture::kBytes / 32 : Fixture::kBytes;
    const std::size_t out =
        collective == PIDCOMM_REDUCE_SCATTER ? Fixture::kBytes / 32 : Fixture::kBytes;
    for (std::size_t dst : {kSrc, kSrc + in, kSrc - out, machine::kMramBytes - out}) {
      pidcomm_request request = fixture.good(collective);
      request.dst = dst;
      CHECK_EQ(pidcomm_run(fixture.cube.get(), &request, nullptr, nullptr), +PIDCOMM_OK);
    }
    pidcomm_request request = fixture.good(collective);
    request.bytes = 0;  // empty windows do not overlap, even at the end of MRAM
    request.dst = machine::kMramBytes;
    CHECK_EQ(pidcomm_run(fixture.cube.get(), &request, nullptr, nullptr), +PIDCOMM_OK);
  }
}

TEST(HostBuffer_MustBeThereAndExactlyAsLargeAsTheRows) {
  const std::vector<int> hosts = {PIDCOMM_SCATTER, PIDCOMM_GATHER, PIDCOMM_REDUCE,
                                  PIDCOMM_BROADCAST};
  const std::vector<int> status = {PIDCOMM_ERR_HOST_BUFFER};
  const std::string parts = std::to_string(2 * 32 * Fixture::kBytes),
                    row = std::to_string(2 * Fixture::kBytes);
  const auto size = [](std::size_t n) {
    return [n](pidcomm_request &r, pidcomm_options &) { r.host_bytes = n; };
  };
  const auto off = [](std::ptrdiff_t by) {
    return [by](pidcomm_request &r, pidcomm_options &) {
      r.host_bytes += static_cast<std::size_t>(by);
    };
  };
  check_breakages(
      {
          {"host null",
           hosts,
           status,
           {},
           false,
           [](pidcomm_request &r, pidcomm_options &) { r.host = nullptr; }},
          {"host empty", hosts, status, {"0"}, false, size(0)},
          {"host too small",
           {PIDCOMM_SCATTER, PIDCOMM_GATHER},
           status,
           {parts, std::to_string(2 * 32 * Fixture::kBytes - 1)},
           false,
           off(-1)},
          {"host too small",
           {PIDCOMM_REDUCE, PIDCOMM_BROADCAST},
           status,
           {row, std::to_string(2 * Fixture::kBytes - 8)},
           false,
           off(-8)},
          {"host too large",
           {PIDCOMM_SCATTER, PIDCOMM_GATHER},
           status,
           {parts, std::to_string(2 * 32 * Fixture::kBytes + 8)},
           false,
           off(8)},
          {"host too large", {PIDCOMM_REDUCE, PIDCOMM_BROADCAST}, status, {row}, false, off(1)},
          {"host size huge", hosts, status, {std::to_string(SIZE_MAX)}, false, size(SIZE_MAX)},
          {"host size not 0 for no bytes",
           hosts,
           status,
           {},
           false,
           [](pidcomm_request &r, pidcomm_options &) {
             r.bytes = 0;
             r.host_bytes = 8;
           }},
      },
      false);
}

#define COUNT_ROW(...) +1
constexpr int kFirstFreeType = PIDCOMM_INT8 PIDCOMM_TYPES(COUNT_ROW),
              kFirstFreeOp = PIDCOMM_SUM PIDCOMM_OPS(COUNT_ROW);
#undef COUNT_ROW

TEST(TypesAndOperators_MustBeKnownAndFitEachOther) {
  const std::vector<int> reductions = {PIDCOMM_REDUCE_SCATTER, PIDCOMM_ALLREDUCE, PIDCOMM_REDUCE};
  std::vector<Breakage> breakages;
  for (int type : {0, 3, 5, 15, kFirstFreeType, 16 + 256, -1, 1 << 30})
    breakages.push_back({"unknown type",
                         {},
                         {PIDCOMM_ERR_TYPE},
                         {std::to_string(type)},
                         true,
                         [type](pidcomm_request &r, pidcomm_options &) { r.type = type; }});
  for (int op : {-1, kFirstFreeOp, 256, 1 << 30})
    breakages.push_back({"unknown operator",
                         reductions,
                         {PIDCOMM_ERR_OP},
                         {std::to_string(op)},
                         true,
                         [op](pidcomm_request &r, pidcomm_options &) { r.op = op; }});
  for (int type : {1, 2, 4, 8})
    breakages.push_back({"bare size",
                         {},
                         {PIDCOMM_ERR_TYPE},
                         {std::to_string(type), "pidcomm_int" + std::to_string(8 * type)},
                         true,
                         [type](pidcomm_request &r, pidcomm_options &) { r.type = type; }});
  for (int type : {PIDCOMM_FLOAT32, PIDCOMM_FLOAT64, PIDCOMM_FLOAT16, PIDCOMM_BFLOAT16})
    for (int op : {PIDCOMM_AND, PIDCOMM_OR, PIDCOMM_XOR})
      breakages.push_back(
          {"bits of a float",
           reductions,
           {PIDCOMM_ERR_OP},
           {pidcomm_name(PIDCOMM_TABLE_OP, op), pidcomm_name(PIDCOMM_TABLE_TYPE, type)},
           true,
           [type, op](pidcomm_request &r, pidcomm_options &) {
             r.type = type;
             r.op = op;
           }});
  check_breakages(breakages, true);
}

TEST(FieldsThatACollectiveDoesNotUse_AreIgnored) {
  Fixture fixture;
  for (int collective = kFirst; collective <= kLast; ++collective) {
    pidcomm_request request = fixture.good(collective);
    if (collective != PIDCOMM_REDUCE_SCATTER && collective != PIDCOMM_ALLREDUCE &&
        collective != PIDCOMM_REDUCE)
      request.op = 99;
    if (collective == PIDCOMM_GATHER || collective == PIDCOMM_REDUCE) request.dst = 3;
    if (collective == PIDCOMM_SCATTER || collective == PIDCOMM_BROADCAST) request.src = kHuge + 3;
    if (Fixture::host_bytes(collective, 8) == 0) {
      request.host = nullptr;
      request.host_bytes = 13;
    }
    CHECK_EQ(pidcomm_run(fixture.cube.get(), &request, nullptr, nullptr), +PIDCOMM_OK);
  }
}

TEST(Options_MustBeKnownAndPossibleOnThisMachine) {
  const std::vector<int> status = {PIDCOMM_ERR_OPTION};
  std::vector<Breakage> breakages;
  for (int value : {-2, 99, 1 << 30}) {
    const std::string text = std::to_string(value);
    breakages.push_back(
        {"technique", {}, status, {text}, true, [value](pidcomm_request &, pidcomm_options &o) {
           o.technique = value;
         }});
    breakages.push_back(
        {"isa", {}, status, {text}, true, [value](pidcomm_request &, pidcomm_options &o) {
           o.isa = value;
         }});
    breakages.push_back(
        {"coherence", {}, status, {text}, true, [value](pidcomm_request &, pidcomm_options &o) {
           o.coherence = value;
         }});
  }
  for (int value : {-1, 1025, 1 << 30})
    breakages.push_back({"threads",
                         {},
                         status,
                         {std::to_string(value)},
                         true,
                         [value](pidcomm_request &, pidcomm_options &o) { o.threads = value; }});
#define ISA_ROW(ENUM, code, name, level)           \
  if (pidcomm_isa_available(code) == 0)            \
    breakages.push_back({"isa of another machine", \
                         {},                       \
                         status,                   \
                         {name},                   \
                         true,                     \
                         [](pidcomm_request &, pidcomm_options &o) { o.isa = code; }});
  PIDCOMM_ISAS(ISA_ROW)
#undef ISA_ROW
  check_breakages(breakages, true);
}

TEST(UnknownCollectivesAndNullArguments_AreRejected) {
  Fixture fixture;
  const std::vector<int> argument = {PIDCOMM_ERR_ARGUMENT};
  pidcomm_request request = fixture.good(PIDCOMM_ALLTOALL);
  for (int collective : {-1, 8, 1 << 30}) {
    request.collective = collective;
    check_error(pidcomm_run(fixture.cube.get(), &request, nullptr, nullptr), argument,
                {std::to_string(collective)}, "unknown collective");
  }
  check_error(pidcomm_run(fixture.cube.get(), nullptr, nullptr, nullptr), argument, {},
              "null request");
  request.collective = PIDCOMM_ALLTOALL;
  check_error(pidcomm_run(nullptr, &request, nullptr, nullptr), argument, {}, "null cube");
  const struct {
    const char *name;
    int status;
  } calls[] = {
      {"alltoall", pidcomm_alltoall(nullptr, "101", 512, 0, 4096, PIDCOMM_INT32)},
      {"reduce_scatter",
       pidcomm_reduce_scatter(nullptr, "101", 512, 0, 4096, PIDCOMM_INT32, PIDCOMM_SUM)},
      {"allreduce", pidcomm_allreduce(nullptr, "101", 512, 0, 4096, PIDCOMM_INT32, PIDCOMM_SUM)},
      {"allgather", pidcomm_allgather(nullptr, "101", 512, 0, 4096, PIDCOMM_INT32)},
      {"scatter",
       pidcomm_scatter(nullptr, "101", 512, fixture.host.data(), 32768, 0, PIDCOMM_INT32)},
      {"gather", pidcomm_gather(nullptr, "101", 512, 0, fixture.host.data(), 32768, PIDCOMM_INT32)},
      {"reduce", pidcomm_reduce(nullptr, "101", 512, 0, fixture.host.data(), 1024, PIDCOMM_INT32,
                                PIDCOMM_SUM)},
      {"broadcast",
       pidcomm_broadcast(nullptr, "101", 512, fixture.host.data(), 1024, 0, PIDCOMM_INT32)},
      {"write", pidcomm_write(nullptr, 0, 8, fixture.host.data())},
      {"read", pidcomm_read(nullptr, 0, 8, fixture.host.data())},
  };
  for (const auto &call : calls)
    check_error(call.status, argument, {}, std::string("null cube, ") + call.name);
  fixture.unchanged.check();
}

TEST(NamedFunctions_CheckLikeRequests) {
  Fixture fixture;
  pidcomm_hypercube *m = fixture.cube.get();
  Bytes &host = fixture.host;
  check_error(pidcomm_alltoall(m, "11", 512, 0, 4096, PIDCOMM_INT32), {PIDCOMM_ERR_MASK}, {"11"},
              "alltoall");
  check_error(pidcomm_reduce_scatter(m, "101", 520, 0, 4096, PIDCOMM_INT32, PIDCOMM_SUM),
              {PIDCOMM_ERR_SIZE}, {"520"}, "reduce_scatter");
  check_error(pidcomm_allreduce(m, "101", 512, 0, 8, PIDCOMM_INT32, PIDCOMM_SUM),
              {PIDCOMM_ERR_WINDOW}, {"8"}, "allreduce");
  check_error(pidcomm_allgather(m, "101", 512, 4, 4096, PIDCOMM_INT32), {PIDCOMM_ERR_WINDOW}, {"4"},
              "allgather");
  check_error(pidcomm_scatter(m, "101", 512, host.data(), 5, 0, PIDCOMM_INT32),
              {PIDCOMM_ERR_HOST_BUFFER}, {"5"}, "scatter");
  check_error(pidcomm_gather(m, "101", 512, 0, nullptr, 32768, PIDCOMM_INT32),
              {PIDCOMM_ERR_HOST_BUFFER}, {}, "gather");
  check_error(pidcomm_reduce(m, "101", 512, 0, host.data(), 1024, 4, PIDCOMM_MAX),
              {PIDCOMM_ERR_TYPE}, {"4"}, "reduce");
  check_error(pidcomm_broadcast(m, "101", 512, host.data(), 1024, 0, 33), {PIDCOMM_ERR_TYPE},
              {"33"}, "broadcast");
  fixture.unchanged.check();
}

TEST(WriteAndRead_CheckTheirWindowAndBuffer) {
  Fixture fixture;
  const struct {
    const char *what;
    std::size_t offset, bytes;
    bool has_host;
    std::vector<int> statuses;
    std::string word;
  } rows[] = {
      {"misaligned", 12, 8, true, {PIDCOMM_ERR_WINDOW}, "12"},
      {"odd size", 8, 12, true, {PIDCOMM_ERR_SIZE, PIDCOMM_ERR_WINDOW}, "12"},
      {"past the end",
       machine::kMramBytes - 8,
       16,
       true,
       {PIDCOMM_ERR_WINDOW},
       std::to_string(machine::kMramBytes - 8)},
      {"offset overflows", kHuge, 8, true, {PIDCOMM_ERR_WINDOW}, std::to_string(kHuge)},
      {"size overflows",
       8,
       kHuge,
       true,
       {PIDCOMM_ERR_WINDOW, PIDCOMM_ERR_SIZE, PIDCOMM_ERR_HOST_BUFFER},
       ""},
      {"no buffer", 8, 8, false, {PIDCOMM_ERR_HOST_BUFFER}, ""},
      {"misaligned, no bytes", 12, 0, true, {PIDCOMM_ERR_WINDOW}, "12"},
  };
  for (const auto &row : rows) {
    std::uint8_t *host = row.has_host ? fixture.host.data() : nullptr;
    check_error(pidcomm_write(fixture.cube.get(), row.offset, row.bytes, host), row.statuses,
                {row.word}, std::string("write ") + row.what);
    check_error(pidcomm_read(fixture.cube.get(), row.offset, row.bytes, host), row.statuses,
                {row.word}, std::string("read ") + row.what);
  }
  fixture.unchanged.check();
}

TEST(Queries_CheckPeMaskAndPointers) {
  Fixture fixture;
  pidcomm_hypercube *m = fixture.cube.get();
  std::uint32_t a = 77, b = 78, coords[3] = {1, 2, 3};
  const std::vector<int> argument = {PIDCOMM_ERR_ARGUMENT}, mask = {PIDCOMM_ERR_MASK};
  check_error(pidcomm_coords(m, 64, coords), argument, {"64"}, "coords of PE 64");
  check_error(pidcomm_coords(m, UINT32_MAX, coords), argument, {std::to_string(UINT32_MAX)},
              "coords of PE 2^32 - 1");
  check_error(pidcomm_coords(m, 0, nullptr), argument, {}, "coords null");
  check_error(pidcomm_coords(nullptr, 0, coords), argument, {}, "coords without cube");
  check_error(pidcomm_pe_location(m, 64, coords, coords + 1, coords + 2), argument, {"64"},
              "location of PE 64");
  check_error(pidcomm_pe_location(m, 0, nullptr, &a, &b), argument, {}, "rank null");
  check_error(pidcomm_pe_location(m, 0, &a, nullptr, &b), argument, {}, "chip null");
  check_error(pidcomm_pe_location(m, 0, &a, &b, nullptr), argument, {}, "bank null");
  check_error(pidcomm_pe_location(nullptr, 0, coords, coords + 1, coords + 2), argument, {},
              "location without cube");
  const struct dpu_set_t set = fixture.set.get();
  check_error(pidcomm_usable_pes(set, nullptr, 0, nullptr), argument, {"count"}, "count null");
  check_error(pidcomm_usable_pes(set, nullptr, 1, &a), argument, {"pes"}, "usable PEs null");
  check_error(pidcomm_program_replaced(set, nullptr), argument, {"is_replaced"}, "program, null");
  check_error(pidcomm_group_of(m, "101", 64, &a), argument, {"64"}, "group of PE 64");
  check_error(pidcomm_group_of(m, "1", 0, &a), mask, {"1", "3"}, "group, mask");
  check_error(pidcomm_group_of(m, "101", 0, nullptr), argument, {}, "group null");
  check_error(pidcomm_member_of(m, "101", 64, &a), argument, {"64"}, "member of PE 64");
  check_error(pidcomm_member_of(m, "1?1", 0, &a), mask, {"1?1"}, "member, mask");
  check_error(pidcomm_member_of(nullptr, "101", 0, &a), argument, {}, "member without cube");
  check_error(pidcomm_groups(m, "1111", &a, &b), mask, {"1111"}, "groups, mask");
  check_error(pidcomm_groups(nullptr, "101", &a, &b), argument, {}, "groups without cube");
  CHECK(a == 77 && b == 78 && coords[0] == 1 && coords[1] == 2 && coords[2] == 3);
  const struct dpu_set_t none = pidcomm_pe_set(m, 64);
  CHECK(none.kind == DPU_SET_RANKS && none.list.nr_ranks == 0);
  CHECK(pidcomm_pe_set(nullptr, 0).list.nr_ranks == 0);
}

TEST(PlanJson_ChecksShapeAndPointers) {
  pidcomm_request request{};
  request.collective = PIDCOMM_ALLTOALL;
  request.mask = "10";
  request.bytes = 64;
  request.dst = 4096;
  request.type = PIDCOMM_INT32;
  const Axes axis_len = {8, 4};
  std::size_t length = 123;
  char json[8] = "1234567";
  const auto plan = [&](std::uint32_t axes, const std::uint32_t *len, const pidcomm_request *r,
                        char *to, std::size_t capacity, std::size_t *l) {
    return pidcomm_plan_json(axes, len, r, nullptr, 0, to, capacity, l);
  };
  const std::uint32_t zero[] = {8, 0}, large[] = {UINT32_MAX, UINT32_MAX};
  check_error(plan(0, axis_len.data(), &request, json, 8, &length), {PIDCOMM_ERR_SHAPE}, {"0"},
              "no axis");
  check_error(plan(17, axis_len.data(), &request, json, 8, &length), {PIDCOMM_ERR_SHAPE}, {"17"},
              "17 axes");
  check_error(plan(2, zero, &request, json, 8, &length), {PIDCOMM_ERR_SHAPE}, {"0"}, "length 0");
  check_error(plan(2, large, &request, json, 8, &length), {PIDCOMM_ERR_SHAPE}, {}, "overflow");
  check_error(plan(2, nullptr, &request, json, 8, &length), {PIDCOMM_ERR_ARGUMENT}, {},
              "null lengths");
  check_error(plan(2, axis_len.data(), nullptr, json, 8, &length), {PIDCOMM_ERR_ARGUMENT}, {},
              "null request");
  check_error(plan(2, axis_len.data(), &request, nullptr, 8, &length), {PIDCOMM_ERR_ARGUMENT}, {},
              "null json");
  check_error(plan(2, axis_len.data(), &request, json, 8, nullptr), {PIDCOMM_ERR_ARGUMENT}, {},
              "null length");
  CHECK_EQ(std::string(json), "1234567");
}

}  // namespace
