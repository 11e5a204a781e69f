// The published artifact's calls against loops written out here from their definitions: every call, shapes with a first axis of 8 and
// more, of 4 and of 2, every axis mask, element sizes, windows and host layouts; what they refuse; allocation and the loop over PEs.

#include <pidcomm_artifact.h>

#include <memory>
#include <set>

#include "machine.h"

namespace {

using machine::Axes;
using machine::Bytes;
using machine::DpuSet;
using machine::Hypercube;

constexpr std::size_t kMiB = 1 << 20;
constexpr std::size_t kStart = 4096;  // of the part of MRAM that is looked at
constexpr std::size_t kBuffer = kMiB;

struct Free {
  void operator()(pidcomm_artifact_manager *manager) const { std::free(manager); }
};
using Manager = std::unique_ptr<pidcomm_artifact_manager, Free>;

Manager manager_of(struct dpu_set_t set, const Axes &axis_len) {
  Manager manager(pidcomm_artifact_init(set, static_cast<std::uint32_t>(axis_len.size()), axis_len.data()));
  if (manager == nullptr) machine::fail(std::string("pidcomm_artifact_init: ") + pidcomm_last_error());
  return manager;
}

void ok(int status) {
  if (status != PIDCOMM_OK) machine::fail(pidcomm_last_error());
}

/// Which group a PE is in, and as which member.
struct Place {
  std::size_t group = 0, member = 0, groups = 1, members = 1;
};

Place place_of(const Axes &axis_len, const std::string &comm, std::size_t pe) {
  Place place;
  for (std::size_t axis = 0; axis < axis_len.size(); ++axis) {
    const std::size_t coordinate = pe % axis_len[axis];
    pe /= axis_len[axis];
    (comm[axis] == '1' ? place.member : place.group) += coordinate * (comm[axis] == '1' ? place.members : place.groups);
    (comm[axis] == '1' ? place.members : place.groups) *= axis_len[axis];
  }
  return place;
}

std::size_t product(const Axes &axis_len) {
  std::size_t pes = 1;
  for (const std::uint32_t length : axis_len) pes *= length;
  return pes;
}

/// PEs of all groups: pe[group][member].
std::vector<std::vector<std::size_t>> groups_of(const Axes &axis_len, const std::string &comm) {
  const Place any = place_of(axis_len, comm, 0);
  std::vector<std::vector<std::size_t>> groups(any.groups, std::vector<std::size_t>(any.members));
  for (std::size_t pe = 0; pe < product(axis_len); ++pe) {
    const Place place = place_of(axis_len, comm, pe);
    groups[place.group][place.member] = pe;
  }
  return groups;
}

std::int64_t element(const std::uint8_t *bytes, std::size_t size) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, size);
  const int unused = static_cast<int>(64 - 8 * size);
  return static_cast<std::int64_t>(value << unused) >> unused;
}

/// into = into op from, element by element.
void combine(std::uint8_t *into, const std::uint8_t *from, std::size_t bytes, std::size_t size, bool is_max) {
  for (std::size_t i = 0; i < bytes; i += size) {
    const std::int64_t a = element(into + i, size), b = element(from + i, size);
    const std::uint64_t sum = static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b);
    const std::uint64_t result = is_max ? static_cast<std::uint64_t>(std::max(a, b)) : sum;
    std::memcpy(into + i, &result, size);
  }
}

enum class Call { kAllToAll, kReduceScatter, kAllReduce, kAllGather };

struct Case {
  Call call;
  std::string comm;
  std::size_t total, target;
  std::uint32_t size, op;

  bool differs_by_member() const { return call == Call::kAllToAll || call == Call::kReduceScatter; }
  int run(const pidcomm_artifact_manager *manager, std::size_t start, std::size_t buffer) const {
    switch (call) {
      case Call::kAllToAll:
        return pidcomm_artifact_alltoall(manager, comm.c_str(), total, start, target, buffer);
      case Call::kReduceScatter:
        return pidcomm_artifact_reduce_scatter(manager, comm.c_str(), total, start, target, buffer, size);
      case Call::kAllReduce:
        return pidcomm_artifact_all_reduce(manager, comm.c_str(), total, start, target, buffer, size, op);
      case Call::kAllGather:
        return pidcomm_artifact_allgather(manager, comm.c_str(), total, start, target, buffer);
    }
    return PIDCOMM_ERR_INTERNAL;
  }

  /// What member q of a group has afterwards; in[p] is what member p had.
  Bytes result(const std::vector<const std::uint8_t *> &in, std::size_t q) const {
    const std::size_t block = total / in.size();
    Bytes out(call == Call::kReduceScatter ? block : total);
    for (std::size_t p = 0; p < in.size(); ++p) {
      switch (call) {
        case Call::kAllToAll:
          std::memcpy(out.data() + p * block, in[p] + q * block, block);
          break;
        case Call::kAllGather:
          std::memcpy(out.data() + p * block, in[p], block);
          break;
        case Call::kReduceScatter:
        case Call::kAllReduce:
          const std::uint8_t *from = in[p] + (call == Call::kReduceScatter ? q * block : 0);
          if (p == 0)
            std::memcpy(out.data(), from, out.size());
          else
            combine(out.data(), from, out.size(), size, op == 1);
      }
    }
    return out;
  }
};

Bytes random_rows(std::size_t rows, std::size_t row_bytes, std::uint64_t seed) {
  Bytes bytes(rows * row_bytes);
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const std::uint64_t value = verify::mix(seed * 0x10001 + i);
    std::memcpy(bytes.data() + i, &value, 8);
  }
  return bytes;
}

/// Sets the sign of every element.
void make_negative(Bytes &bytes, std::size_t size) {
  for (std::size_t i = size - 1; i < bytes.size(); i += size) bytes[i] |= 0x80;
}

void run_case(const Hypercube &cube, const pidcomm_artifact_manager *manager, const Case &it, std::size_t start, std::uint64_t seed) {
  const std::size_t row_bytes = std::max(start, it.target) + it.total + 64 - kStart;
  Bytes before = random_rows(cube.rows(), row_bytes, seed);
  if (it.op == 1 && seed % 2 == 0) make_negative(before, it.size);
  cube.write(kStart, row_bytes, before);
  Bytes want = before;
  for (const std::vector<std::size_t> &group : groups_of(cube.axis_len(), it.comm)) {
    std::vector<const std::uint8_t *> in;
    for (const std::size_t pe : group) in.push_back(before.data() + pe * row_bytes + start - kStart);
    Bytes out;
    for (std::size_t member = 0; member < group.size(); ++member) {
      if (member == 0 || it.differs_by_member()) out = it.result(in, member);
      std::memcpy(want.data() + group[member] * row_bytes + it.target - kStart, out.data(), out.size());
    }
  }
  ok(it.run(manager, start, kBuffer));
  const Bytes got = cube.read(kStart, row_bytes);
  const auto wrong = std::mismatch(got.begin(), got.end(), want.begin()).first - got.begin();
  if (got != want)
    machine::fail("call " + std::to_string(static_cast<int>(it.call)) + " comm " + it.comm + " size " + std::to_string(it.size) + " op " +
                  std::to_string(it.op) + " total " + std::to_string(it.total) + " start " + std::to_string(start) + " target " +
                  std::to_string(it.target) + ": row " + std::to_string(static_cast<std::size_t>(wrong) / row_bytes) + " byte " +
                  std::to_string(static_cast<std::size_t>(wrong) % row_bytes) + " is wrong");
}

const std::vector<Axes> kShapes = {{8, 8, 1}, {16, 2, 4}, {8, 2, 3}, {24, 2, 2}, {4, 4, 4}, {2, 8, 4}, {2, 2, 16}, {4, 2, 4, 2}};
constexpr std::uint32_t kRanks = 2;

std::vector<std::string> masks(std::size_t axes) {
  std::vector<std::string> all;
  for (std::uint32_t bits = 0; bits < 1u << axes; ++bits) {
    std::string mask;
    for (std::size_t axis = 0; axis < axes; ++axis) mask += (bits >> axis & 1) != 0 ? '1' : '0';
    all.push_back(mask);
  }
  return all;
}

DpuSet machine_of(std::uint32_t ranks) {
  machine::power_up(ranks);
  return DpuSet::of_ranks(ranks);
}

/// Fails unless the status is `status` and the sentence has all of `words`.
void check_refused(int got, int status, const std::vector<std::string> &words) {
  const std::string sentence = pidcomm_last_error();
  if (got != status) machine::fail("status " + std::to_string(got) + " instead of " + std::to_string(status) + ": " + sentence);
  for (const std::string &word : words)
    if (sentence.find(word) == std::string::npos) machine::fail("no \"" + word + "\" in: " + sentence);
}

/// Host buffers of 8 interleaved lanes each, with a guard behind.
class Buffers {
 public:
  Buffers(std::size_t count, std::size_t bytes, std::uint64_t seed) : bytes_(bytes) {
    for (std::size_t i = 0; i < count; ++i) buffers_.push_back(random_rows(1, bytes + 64, seed + i));
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

TEST(Collectives_DeliverWhatTheirDefinitionsSayInEveryWindow) {
  const DpuSet set = machine_of(kRanks);
  machine::Grid grid("collectives");
  std::uint64_t seed = 0;
  for (const Axes &axis_len : kShapes) {
    const Hypercube cube(set, axis_len);
    const Manager manager = manager_of(set.get(), axis_len);
    for (const std::string &comm : masks(axis_len.size())) {
      const std::size_t members = place_of(axis_len, comm, 0).members;
      for (const Call call : {Call::kAllToAll, Call::kReduceScatter, Call::kAllReduce, Call::kAllGather}) {
        for (const std::uint32_t size : {1u, 2u, 4u, 8u}) {
          for (const std::uint32_t op : {0u, 1u}) {
            const bool takes_size = call == Call::kReduceScatter || call == Call::kAllReduce;
            if ((!takes_size && size != 8) || (call != Call::kAllReduce && op != 0)) continue;
            const std::size_t total = members * 8 * (2 + ++seed % 2), start = kStart + 64;
            // apart, in place, partial overlaps in both directions
            for (const std::size_t target : {start + total + 8, start, start + 8, start - 8}) {
              grid.run([&] { run_case(cube, manager.get(), {call, comm, total, target, size, op}, start, seed); });
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
  const std::size_t total = 64 * 136;  // blocks of 136 bytes, which no run of lines is a multiple of
  for (const Call call : {Call::kAllToAll, Call::kReduceScatter, Call::kAllReduce, Call::kAllGather})
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
      ok(pidcomm_artifact_gather(manager.get(), std::string(axis_len.size(), '1').c_str(), total, kStart, 0, host.pointers()));
      for (std::size_t eg = 0; eg < host.buffers().size(); ++eg) {
        Bytes want = host.before()[eg];
        for (std::size_t lane = 0; lane < 8; ++lane)
          for (std::size_t word = 0; word < total / 8; ++word)
            std::memcpy(want.data() + word * 64 + lane * 8, rows.data() + (eg * 8 + lane) * 64 + word * 8, 8);
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
            std::memcpy(rows.data() + (eg * 8 + lane) * 64 + word * 8, buffer.data() + word * 64 + lane * 8, 8);
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
          Buffers host(selects_x ? groups.size() : groups.size() / 8, selects_x ? total : 8 * total, 300);
          std::vector<Bytes> want = host.before();
          for (std::size_t g = 0; g < groups.size(); ++g) {
            Bytes sum(rows.data() + groups[g][0] * total, rows.data() + (groups[g][0] + 1) * total);
            for (std::size_t m = 1; m < members; ++m) combine(sum.data(), rows.data() + groups[g][m] * total, total, size, false);
            for (std::size_t word = 0; word < total / 8; ++word) {
              const std::size_t owner = word * 8 / block, in_block = word % (block / 8);  // owner: the member whose block it is
              const std::size_t to = selects_x ? owner / 8 * 8 * block + in_block * 64 + owner % 8 * 8 : word * 64 + g % 8 * 8;
              std::memcpy(want[selects_x ? g : g / 8].data() + to, sum.data() + word * 8, 8);
            }
          }
          ok(pidcomm_artifact_reduce(manager.get(), comm.c_str(), total, kStart, 0, size, host.pointers()));
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
      CHECK(std::memcmp(host.buffers()[pe / 8].data() + byte * 8 + pe % 8 * 8, rows.data() + pe * total + byte, 8) == 0);
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
  for (std::size_t row = 0; row < 128; ++row) std::memcpy(rows.data() + row * 256 + 64, data.data(), 128);
  CHECK(cube.read(kStart, 256) == rows);
}

TEST(AllReduce_WithoutABufferRefusesPartialOverlap) {
  const DpuSet set = machine_of(1);
  const Manager manager = manager_of(set.get(), {8, 8});
  ok(pidcomm_artifact_all_reduce_unbuffered(manager.get(), "10", 64, kStart, kStart + 64, 4, 1));
  check_refused(pidcomm_artifact_all_reduce_unbuffered(manager.get(), "10", 64, kStart, kStart + 8, 4, 1), PIDCOMM_ERR_WINDOW,
                {"[4096, 4160)", "[4104, 4168)", "no buffer"});
}

TEST(WhatIsWrong_IsRefusedWithASentenceBeforeAnythingMoves) {
  const DpuSet set = machine_of(1);
  const Axes axis_len = {8, 4, 2};
  const Hypercube cube(set, axis_len);
  const Manager manager = manager_of(set.get(), axis_len), flat = manager_of(set.get(), {4, 16}), odd = manager_of(set.get(), {3, 5});
  pidcomm_artifact_manager lost = *manager;
  lost.axis_len = nullptr;
  const auto *m = manager.get();
  const std::size_t row_bytes = 4096, end = machine::kMramBytes;
  Bytes near_start = random_rows(64, row_bytes, 12), near_end = random_rows(64, row_bytes, 13), buffer = random_rows(64, row_bytes, 14);
  cube.write(kStart, row_bytes, near_start);
  cube.write(end - row_bytes, row_bytes, near_end);
  cube.write(kStart + kBuffer, row_bytes, buffer);
  Buffers host(8, 8 * 64, 500);
  void **p = host.pointers();
  std::vector<void *> holes(p, p + 8);
  holes[5] = nullptr;
  const std::size_t s = kStart, t = kStart + 2048, b = kBuffer;

  check_refused(pidcomm_artifact_alltoall(nullptr, "100", 64, s, t, b), PIDCOMM_ERR_ARGUMENT, {"manager is null"});
  check_refused(pidcomm_artifact_alltoall(&lost, "100", 64, s, t, b), PIDCOMM_ERR_ARGUMENT, {"axis_len is null"});
  check_refused(pidcomm_artifact_alltoall(m, nullptr, 64, s, t, b), PIDCOMM_ERR_MASK, {});
  check_refused(pidcomm_artifact_alltoall(m, "10", 64, s, t, b), PIDCOMM_ERR_MASK, {"10"});
  check_refused(pidcomm_artifact_alltoall(m, "10x", 64, s, t, b), PIDCOMM_ERR_MASK, {"10x"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 68, s, t, b), PIDCOMM_ERR_SIZE, {"68"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 68, s, s + 8, b), PIDCOMM_ERR_SIZE, {"68"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s + 4, t, b), PIDCOMM_ERR_WINDOW, {"4100"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, s + 4, b), PIDCOMM_ERR_WINDOW, {"target (4100)"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, end - 56, b), PIDCOMM_ERR_WINDOW, {std::to_string(end - 56)});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, end - 64, end - 56, 64), PIDCOMM_ERR_WINDOW, {"overlap"});
  check_refused(pidcomm_artifact_reduce_scatter(m, "111", 4096, end - 4096, end - 8, 8 * kMiB, 4), PIDCOMM_ERR_WINDOW, {});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, end - 128, end - 120, 72), PIDCOMM_ERR_WINDOW, {std::to_string(end - 56)});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, s + 8, 0), PIDCOMM_ERR_WINDOW, {"start + 0", "must overlap neither"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, s + 8, 56), PIDCOMM_ERR_WINDOW, {"start + 56"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, s + 8, 64), PIDCOMM_ERR_WINDOW, {"start + 64"});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, s + 8, end), PIDCOMM_ERR_WINDOW, {});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, s, s + 8, SIZE_MAX - 7), PIDCOMM_ERR_WINDOW, {"start + 18446744073709551608"});
  check_refused(pidcomm_artifact_alltoall(m, "100", SIZE_MAX - 7, s, s + 8, b), PIDCOMM_ERR_WINDOW, {});
  check_refused(pidcomm_artifact_alltoall(m, "100", 64, SIZE_MAX - 7, SIZE_MAX - 15, b), PIDCOMM_ERR_WINDOW, {});
  check_refused(pidcomm_artifact_reduce_scatter(m, "100", 64, s, t, b, 3), PIDCOMM_ERR_TYPE, {"size (3)"});
  check_refused(pidcomm_artifact_all_reduce(m, "100", 64, s, t, b, 0, 0), PIDCOMM_ERR_TYPE, {"size (0)"});
  check_refused(pidcomm_artifact_all_reduce(m, "100", 64, s, t, b, 4, 2), PIDCOMM_ERR_OP, {"reduce_type (2)", "1, the maximum"});
  check_refused(pidcomm_artifact_reduce(m, "100", 64, s, b, 5, p), PIDCOMM_ERR_TYPE, {"size (5)"});
  check_refused(pidcomm_artifact_reduce(m, "100", 72, s, b, 4, p), PIDCOMM_ERR_SIZE, {"72", "8 PEs"});
  check_refused(pidcomm_artifact_reduce(m, "100", 64, s, b, 4, nullptr), PIDCOMM_ERR_ARGUMENT, {"host is null"});
  check_refused(pidcomm_artifact_reduce(m, "100", 64, s, b, 4, holes.data()), PIDCOMM_ERR_HOST_BUFFER, {"5 of 8"});
  check_refused(pidcomm_artifact_reduce(flat.get(), "10", 64, s, b, 4, p), PIDCOMM_ERR_SHAPE, {"multiple of 8 long, not 4"});
  check_refused(pidcomm_artifact_scatter(flat.get(), "10", 64, s, b, p), PIDCOMM_ERR_SHAPE, {"multiple of 8 long, not 4"});
  check_refused(pidcomm_artifact_scatter(m, "100", 64, s, b, holes.data()), PIDCOMM_ERR_HOST_BUFFER, {"5 of 8"});
  check_refused(pidcomm_artifact_scatter(m, "100", 64, end - 56, b, p), PIDCOMM_ERR_WINDOW, {"end of MRAM"});
  check_refused(pidcomm_artifact_gather(odd.get(), "10", 64, s, b, p), PIDCOMM_ERR_SHAPE, {"15", "multiple of 8"});
  check_refused(pidcomm_artifact_gather(m, "10", 64, s, b, p), PIDCOMM_ERR_MASK, {"10"});
  check_refused(pidcomm_artifact_gather(m, "100", 60, s, b, p), PIDCOMM_ERR_SIZE, {"60"});
  check_refused(pidcomm_artifact_gather(m, "100", 64, s + 1, b, p), PIDCOMM_ERR_WINDOW, {"4097"});
  check_refused(pidcomm_artifact_gather(m, "100", 64, SIZE_MAX - 7, b, p), PIDCOMM_ERR_WINDOW, {"end of MRAM"});
  check_refused(pidcomm_artifact_gather(m, "100", 64, s, b, holes.data()), PIDCOMM_ERR_HOST_BUFFER, {"5 of 8"});
  check_refused(pidcomm_artifact_broadcast(nullptr, 64, t, p[0]), PIDCOMM_ERR_ARGUMENT, {"manager is null"});
  check_refused(pidcomm_artifact_broadcast(m, 64, t, nullptr), PIDCOMM_ERR_ARGUMENT, {"data is null"});
  check_refused(pidcomm_artifact_broadcast(m, 64, end - 56, p[0]), PIDCOMM_ERR_WINDOW, {"end of MRAM"});
  check_refused(pidcomm_artifact_broadcast(m, 60, t, p[0]), PIDCOMM_ERR_SIZE, {"60"});

  CHECK(cube.read(kStart, row_bytes) == near_start);
  CHECK(cube.read(end - row_bytes, row_bytes) == near_end);
  CHECK(cube.read(kStart + kBuffer, row_bytes) == buffer);
  CHECK(host.buffers() == host.before());
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
  // A set that is gone is found out: nothing of it is kept.
  set.free();
  check_refused(pidcomm_artifact_alltoall(manager.get(), "100", 64, 0, 64, 0), PIDCOMM_ERR_SET, {});
  check_refused(pidcomm_artifact_broadcast(manager.get(), 64, 0, large), PIDCOMM_ERR_SET, {});
}

TEST(Allocation_TakesOnlyWholeRanks) {
  machine::power_up(4, {{0, 3, 2}, {2, 0, 0}});
  struct dpu_set_t set;
  std::uint32_t dpus = 0;
  CHECK_EQ(pidcomm_artifact_alloc(128, nullptr, &set, 1), DPU_OK);
  DPU_OK_OR_FAIL(dpu_get_nr_dpus(set, &dpus));
  CHECK_EQ(dpus, 128u);
  CHECK_EQ(dpu_get_rank_id(set.list.ranks[0]) * 10 + dpu_get_rank_id(set.list.ranks[1]), 13u);
  DPU_OK_OR_FAIL(dpu_free(set));
  CHECK_EQ(pidcomm_artifact_alloc(DPU_ALLOCATE_ALL, nullptr, &set, 0), DPU_OK);
  DPU_OK_OR_FAIL(dpu_get_nr_dpus(set, &dpus));
  CHECK_EQ(dpus, 128u);
  DPU_OK_OR_FAIL(dpu_free(set));
  CHECK_EQ(pidcomm_artifact_alloc(72, nullptr, &set, 1), DPU_OK);
  DPU_OK_OR_FAIL(dpu_get_nr_dpus(set, &dpus));
  CHECK_EQ(dpus, 72u);
  const Manager manager = manager_of(set, {8, 9});
  DPU_OK_OR_FAIL(dpu_free(set));
  for (const std::uint32_t count : {0u, 12u, 192u}) CHECK_EQ(pidcomm_artifact_alloc(count, nullptr, &set, 1), DPU_ERR_ALLOCATION);
  CHECK_EQ(pidcomm_artifact_alloc(72, nullptr, &set, 2), DPU_ERR_ALLOCATION);
  CHECK_EQ(pidcomm_artifact_alloc(64, nullptr, nullptr, 1), DPU_ERR_ALLOCATION);
  CHECK_EQ(pidcomm_artifact_alloc(64, "nonsense", &set, 1), DPU_ERR_INVALID_PROFILE);
  const DpuSet everything = DpuSet::of_ranks(4);  // nothing was kept
}

TEST(TheLoop_VisitsEnabledPesLaneByLaneAndBankByBank) {
  machine::power_up(2, {{0, 0, 0}, {1, 7, 7}});
  const DpuSet set = DpuSet::of_ranks(2);
  struct dpu_set_t dpu;
  std::uint32_t i, want_place = 0, visited = 0;
  PIDCOMM_ARTIFACT_FOREACH(set.get(), dpu, i, 128) {
    if (want_place == 0) want_place = 1;  // chip 0, bank 0 of rank 0 is missing
    CHECK_EQ(i, visited);
    struct dpu_t *it = dpu_from_set(dpu);
    CHECK(dpu_get_rank(it) == set.rank(want_place / 64));
    CHECK_EQ(dpu_get_member_id(it) * 8 + dpu_get_slice_id(it), static_cast<int>(want_place % 64));
    ++want_place;
    ++visited;
  }
  CHECK_EQ(i, 126u);
  CHECK_EQ(visited, 126u);
  std::uint32_t singles = 0;
  struct dpu_set_t again;
  PIDCOMM_ARTIFACT_FOREACH(dpu, again, i, 1) {
    CHECK(dpu_from_set(again) == dpu_from_set(dpu));
    ++singles;
  }
  CHECK_EQ(singles, 1u);
  const Hypercube cube(set, {8, 2});
  CHECK(dpu_get_member_id(dpu_from_set(cube.dpu(0))) == 1);  // the library leaves out the whole entangled group
}
