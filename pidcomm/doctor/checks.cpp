#include "doctor/checks.h"

#include <algorithm>
#include <iterator>
#include <random>

#include "verify/fill.h"

namespace doctor {

namespace {

constexpr int kCollectives[] = {
#define PIDCOMM_ROW(ENUM, ...) PIDCOMM_##ENUM,
    PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
};
constexpr int kCopyOrders[] = {
#define PIDCOMM_ROW(ENUM, ...) PIDCOMM_COPY_ORDER_##ENUM,
    PIDCOMM_COPY_ORDERS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
};

struct Arithmetic {
  int type, op;
};
constexpr Arithmetic kArithmetic[] = {
    {PIDCOMM_INT32, PIDCOMM_SUM},  {PIDCOMM_UINT8, PIDCOMM_MAX}, {PIDCOMM_FLOAT32, PIDCOMM_SUM},
    {PIDCOMM_INT64, PIDCOMM_XOR},  {PIDCOMM_INT16, PIDCOMM_MIN}, {PIDCOMM_FLOAT64, PIDCOMM_PROD},
    {PIDCOMM_UINT32, PIDCOMM_AND}, {PIDCOMM_INT8, PIDCOMM_SUM},  {PIDCOMM_UINT64, PIDCOMM_SUM}};

/// Returns shapes for a number of entangled groups: shapes with a lane split that use all these
/// groups, and shapes without a lane split.
std::vector<Axes> shapes(uint32_t egs) {
  std::vector<Axes> all = {{kLanes * egs}, {kLanes, egs}, {2, 4, egs}, {4, 2 * egs}};
  if (egs >= 2) all.insert(all.end(), {{3, 5}, {5, 2, kLanes * egs / 10}});
  if (egs % 2 == 0) all.push_back({16, egs / 2});
  if (egs % 4 == 0) all.push_back({4, 8, egs / 4});
  return all;
}

/// Returns every mask that selects at least one axis.
std::vector<std::string> masks(std::size_t axes) {
  std::vector<std::string> all;
  for (unsigned bits = 1; bits < 1u << axes; ++bits) {
    std::string mask;
    for (std::size_t axis = 0; axis < axes; ++axis) mask += (bits >> axis & 1) != 0 ? '1' : '0';
    all.push_back(mask);
  }
  return all;
}

Bytes payload(const Cube &cube, uint64_t seed, std::size_t row_bytes) {
  Bytes rows(cube.pes() * row_bytes);
  verify::fill_distinct(seed, row_bytes, rows);
  return rows;
}

/// The largest product of bytes and PEs in a call. Checks skip larger sizes, so that they do not
/// take too long on machines with many ranks.
std::size_t most_bytes(const Settings &settings) {
  return std::size_t{settings.is_quick ? 32u : settings.is_emulated ? 256u : 1024u} << 20;
}

}  // namespace

std::string check_mappings(const Ranks &ranks) {
  uint32_t checked = 0;
  for (uint32_t rank = 0; rank < ranks.count(); ++rank) {
    const uint32_t egs = ranks.whole_egs(rank);
    if (egs == 0) continue;
    const std::string name = joined("rank ", rank, ": ");
    try {
      const struct dpu_set_t set = dpu_set_from_rank(ranks.rank(rank));
      const Dpus dpus(set);
      std::vector<std::size_t> addresses = {0};
      for (std::size_t bit = kWordBytes; bit < kMramBytes; bit *= 2) addresses.push_back(bit);
      addresses.push_back(kMramBytes - kWordBytes);
      std::vector<Bytes> words;
      for (const std::size_t address : addresses) words.push_back(dpus.read(address, kWordBytes));
      const Cube cube(set, {kLanes * egs});
      for (std::size_t i = 0; i < addresses.size(); ++i)
        if (dpus.read(addresses[i], kWordBytes) != words[i])
          throw Failed(joined("making a hypercube changed the word at MRAM byte ", addresses[i]));
      Bytes rows = payload(cube, rank, 64);
      cube.write_by_sdk(0, rows);
      cube.check_rows(cube.read_by_library(0, 64), rows, 64, 0, "read by the library: ");
      ++checked;
    } catch (const Failed &error) {
      throw Failed(name + error.what());
    }
  }
  if (checked == 0)
    throw Failed("every entangled group lacks some of its 8 PEs, so collectives cannot use it");
  return joined(checked, " of ", ranks.count(), " ranks",
                checked == ranks.count() ? "" : "; the others have no whole entangled group");
}

std::string check_address_map(const Cube &cube, Direction direction, const Settings &settings) {
  std::mt19937_64 random(settings.seed);
  std::vector<std::size_t> words = {0};
  for (std::size_t bit = kWordBytes; bit < kMramBytes; bit *= 2)
    words.insert(words.end(), {bit, kMramBytes - kWordBytes - bit});
  words.push_back(kMramBytes - kWordBytes);
  for (int i = 0; i < (settings.is_quick ? 16 : 400); ++i)
    words.push_back(random() % (kMramBytes / kWordBytes) * kWordBytes);
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());

  const std::string reader =
      direction == Direction::kSdkToLibrary ? "read by the library: " : "read by the SDK: ";
  const auto write = [&](std::size_t offset, Bytes rows) {
    if (direction == Direction::kSdkToLibrary)
      cube.write_by_sdk(offset, rows);
    else
      cube.write_by_library(offset, rows);
  };
  const auto check = [&](std::size_t offset, const Bytes &want) {
    const std::size_t row_bytes = want.size() / cube.pes();
    const Bytes got = direction == Direction::kSdkToLibrary
                          ? cube.read_by_library(offset, row_bytes)
                          : cube.read_by_sdk(offset, row_bytes);
    cube.check_rows(got, want, row_bytes, offset, reader);
  };
  const auto seed_of = [&](std::size_t offset) {
    return settings.seed ^ verify::mix(offset + static_cast<std::size_t>(direction));
  };
  for (const std::size_t offset : words) write(offset, payload(cube, seed_of(offset), kWordBytes));
  for (const std::size_t offset : words) check(offset, payload(cube, seed_of(offset), kWordBytes));
  // Blocks that cross addresses where the map jumps.
  const std::size_t block = 3 * kRunBytes + 8;
  for (const std::size_t jump : {kRunBytes, 2 * kRunBytes, std::size_t{1} << 21,
                                 std::size_t{1} << 22, kMramBytes - block + 24}) {
    const Bytes rows = payload(cube, seed_of(jump) + 1, block);
    write(jump - 24, rows);
    check(jump - 24, rows);
  }
  return joined(words.size(), " words and 5 blocks of each of ", cube.pes(), " PEs");
}

std::string check_stale_lines(const Cube &cube, const Settings &settings) {
  const int rounds = settings.is_quick ? 20 : 500;
  constexpr std::size_t kBytes = 512, kOffset = kRunBytes - 64;
  const std::string mask(cube.axis_len().size(), '1');
  for (int round = 0; round < rounds; ++round) {
    const uint64_t seed = settings.seed + 2 * static_cast<uint64_t>(round);
    Bytes rows = payload(cube, seed, kBytes);
    cube.write_by_sdk(kOffset, rows);
    cube.check_rows(cube.read_by_library(kOffset, kBytes), rows, kBytes, kOffset,
                    joined("round ", round, ", read by the library: "));
    rows = payload(cube, seed + 1, kBytes);
    cube.write_by_library(kOffset, rows);
    cube.check_rows(cube.read_by_sdk(kOffset, kBytes), rows, kBytes, kOffset,
                    joined("round ", round, ", read by the SDK: "));
    Trial trial{{PIDCOMM_ALLREDUCE, cube.axis_len(), mask, kBytes, PIDCOMM_INT32, PIDCOMM_SUM},
                kOffset,
                kOffset,
                seed};
    run_trial(cube, trial);
  }
  return joined(rounds, " rounds");
}

std::string check_launches(const Ranks &ranks, const Cube &cube, const PeProgram &program,
                           const Settings &settings) {
  check_sdk(dpu_load(ranks.set(), program.path().c_str(), nullptr), "loading the PE program");
  const int rounds = settings.is_quick ? 5 : 100;
  constexpr std::size_t kBytes = 8 * PeProgram::kWords;
  const auto increment = [](Bytes &rows) {
    for (std::size_t at = 0; at < rows.size(); at += 8)
      for (std::size_t byte = at; byte < at + 8 && ++rows[byte] == 0; ++byte) {
      }
  };
  const std::string mask(cube.axis_len().size(), '1');
  const auto pes = static_cast<uint32_t>(cube.pes());
  for (int round = 0; round < rounds; ++round) {
    // In every second round, only the library waits for the PEs.
    const dpu_launch_policy_t policy = round % 2 == 0 ? DPU_SYNCHRONOUS : DPU_ASYNCHRONOUS;
    const auto launch_once = [&] {
      check_sdk(dpu_launch(ranks.set(), policy), "launching the PE program");
    };
    const std::string name = joined("round ", round, ", after a launch, ");
    Bytes rows = payload(cube, settings.seed + static_cast<uint64_t>(round), kBytes);
    cube.write_by_library(0, rows);
    for (int launch = 0; launch < 2; ++launch) {
      launch_once();
      increment(rows);
      cube.check_rows(cube.read_by_library(0, kBytes), rows, kBytes, 0,
                      name + "read by the library: ");
    }
    // One collective runs right after a launch, and the PEs read the result of another collective.
    launch_once();
    increment(rows);
    const verify::Problem problem{PIDCOMM_ALLGATHER,    cube.axis_len(), mask,
                                  std::size_t{8} * pes, PIDCOMM_INT64,   PIDCOMM_SUM};
    Bytes contributions(8 * cube.pes());
    for (std::size_t pe = 0; pe < cube.pes(); ++pe)
      std::copy_n(&rows[pe * kBytes], 8, &contributions[pe * 8]);
    check_library(pidcomm_allgather(cube.get(), mask.c_str(), problem.bytes, 0, kMramBytes / 2,
                                    PIDCOMM_INT64),
                  "allgather");
    const Bytes gathered = verify::expected(problem, contributions);
    cube.check_rows(cube.read_by_library(kMramBytes / 2, problem.bytes), gathered, problem.bytes,
                    kMramBytes / 2, name + "allgather: ");
    check_library(
        pidcomm_allreduce(cube.get(), mask.c_str(), kBytes, 0, 0, PIDCOMM_INT64, PIDCOMM_SUM),
        "allreduce");
    rows = verify::expected(
        {PIDCOMM_ALLREDUCE, cube.axis_len(), mask, kBytes, PIDCOMM_INT64, PIDCOMM_SUM}, rows);
    launch_once();
    increment(rows);
    cube.check_rows(cube.read_by_library(0, kBytes), rows, kBytes, 0,
                    name + "result of allreduce: ");
  }
  return joined(rounds, " rounds of 4 launches, every other round without waiting for them");
}

std::string check_technique(const Ranks &ranks, int technique, uint32_t collectives,
                            const Settings &settings) {
  const Cube cube(ranks.set(), {2, 4, ranks.whole_egs()});
  unsigned trials = 0;
  uint64_t launches = 0;
  for (const int collective : kCollectives) {
    if ((collectives >> collective & 1) == 0) continue;
    for (const std::string &mask : masks(cube.axis_len().size())) {
      const uint32_t group_pes = verify::groups_of(cube.axis_len(), mask).group_pes;
      // Small blocks, which PEs reorder in WRAM, and large blocks. (allreduce and reduce cut a
      // vector into up to 8 blocks.)
      for (const std::size_t block_words : {std::size_t{8}, std::size_t{2400}}) {
        const std::size_t bytes = bytes_of_call(collective, group_pes, block_words);
        if (bytes * cube.pes() > most_bytes(settings)) continue;
        const Arithmetic &arithmetic = kArithmetic[trials % std::size(kArithmetic)];
        Trial trial{{collective, cube.axis_len(), mask, bytes, arithmetic.type, arithmetic.op},
                    8,
                    bytes + 16,
                    settings.seed + trials};
        trial.options.technique = technique;
        trial.options.scratch_offset = 2 * bytes + 24;
        launches += run_trial(cube, trial).pe_launches;
        ++trials;
      }
    }
  }
  return joined(trials, " calls, ", launches, " launches");
}

std::string check_collective(const Ranks &ranks, int collective, const Settings &settings) {
  unsigned trials = 0;
  for (const Axes &shape : shapes(ranks.whole_egs())) {
    const Cube cube(ranks.set(), shape);
    for (const std::string &mask : masks(shape.size())) {
      const uint32_t group_pes = verify::groups_of(shape, mask).group_pes;
      for (const std::size_t block_words : {std::size_t{1}, std::size_t{9}}) {
        const Arithmetic &arithmetic = kArithmetic[trials % std::size(kArithmetic)];
        const std::size_t bytes = bytes_of_call(collective, group_pes, block_words);
        if (bytes * cube.pes() > most_bytes(settings)) continue;
        const std::size_t src = trials * 8, dst = src + bytes + 8 * (trials % 5);
        run_trial(cube, {{collective, shape, mask, bytes, arithmetic.type, arithmetic.op},
                         src,
                         dst,
                         settings.seed + trials});
        ++trials;
        if (settings.is_quick && block_words == 1) break;
      }
    }
  }
  return joined(trials, " calls");
}

namespace {

/// Returns the bytes per PE for the measurements; all PEs together have more bytes than the caches.
std::size_t measured_bytes(const Cube &cube, const Settings &settings) {
  const std::size_t bytes = std::size_t{settings.is_quick      ? 32u
                                        : settings.is_emulated ? 256u
                                                               : 1024u}
                            << 10;
  return std::min(bytes,
                  std::max(kRunBytes, most_bytes(settings) / cube.pes() / kRunBytes * kRunBytes));
}
int repetitions(const Settings &settings) { return settings.is_quick ? 3 : 10; }

}  // namespace

double copy_gb_s(const Cube &cube, const Settings &settings) {
  const std::size_t bytes = measured_bytes(cube, settings);
  double best = 0;
  for (const int copy_order : kCopyOrders)
    for (int i = 0; i < repetitions(settings); ++i) {
      double seconds = 0;
      uint64_t moved = 0;
      check_library(pidcomm_stream_limit(cube.get(), copy_order, bytes, bytes, 0, bytes, nullptr,
                                         &seconds, &moved),
                    "streaming copy");
      best = std::max(best, static_cast<double>(moved) / seconds / 1e9);
    }
  return best;
}

std::string measure_collective(const Cube &cube, int collective, double limit_gb_s,
                               const Settings &settings) {
  std::string mask(cube.axis_len().size(), '0');
  mask[0] = '1';
  const uint32_t group_pes = cube.axis_len()[0];
  const std::size_t block_words =
      measured_bytes(cube, settings) / bytes_of_call(collective, group_pes, 1);
  Trial trial{{collective, cube.axis_len(), mask, bytes_of_call(collective, group_pes, block_words),
               PIDCOMM_INT32, PIDCOMM_SUM},
              0,
              0,
              1};
  trial.dst = trial.problem.bytes;
  double best = 0;
  for (int i = 0; i < repetitions(settings); ++i) {
    const pidcomm_trace trace = run_trial(cube, trial);
    const uint64_t moved = trace.mram_bytes_read + trace.mram_bytes_written +
                           trace.host_bytes_read + trace.host_bytes_written;
    best = std::max(best, static_cast<double>(moved) / trace.seconds_total / 1e9);
  }
  std::ostringstream text;
  text.precision(3);
  text << best << " GB/s of the memory bus";
  if (limit_gb_s > 0)
    text << ", " << static_cast<int>(100 * best / limit_gb_s + 0.5) << "% of the copy";
  return text.str();
}

std::string soak(const Ranks &ranks, double seconds, const Settings &settings) {
  const Stopwatch stopwatch;
  std::mt19937_64 random(settings.seed);
  const auto pick = [&](const auto &choices) {
    return std::data(choices)[random() % std::size(choices)];
  };
  unsigned long calls = 0;
  while (stopwatch.seconds() < seconds) {
    const Axes shape = pick(shapes(ranks.whole_egs()));
    const Cube cube(ranks.set(), shape);
    for (int i = 0; i < 20 && stopwatch.seconds() < seconds; ++i) {
      const int collective = pick(kCollectives);
      const std::string mask = pick(masks(shape.size()));
      const uint32_t group_pes = verify::groups_of(shape, mask).group_pes;
      const std::size_t bytes =
          bytes_of_call(collective, group_pes, 1 + random() % std::max(1u, 4096 / group_pes));
      const Arithmetic arithmetic = pick(kArithmetic);
      const std::size_t src = random() % (kMramBytes / 32) * 8,
                        dst = kMramBytes / 2 + random() % (kMramBytes / 32) * 8;
      run_trial(
          cube,
          {{collective, shape, mask, bytes, arithmetic.type, arithmetic.op}, src, dst, random()});
      ++calls;
    }
  }
  return joined(calls, " calls with random shapes, masks, sizes, windows and types; seed ",
                settings.seed);
}

}  // namespace doctor
