// A manager of the published artifact's calls on an emulated machine. Plain loops compute the
// effect of the calls on MRAM.
#pragma once

#include <pidcomm_artifact.h>

#include <memory>

#include "machine.h"

namespace artifact_machine {

using machine::Axes;
using machine::Bytes;
using machine::DpuSet;
using machine::Hypercube;

inline constexpr std::uint32_t kRanks = 2;
inline constexpr std::size_t kMiB = 1 << 20;
inline constexpr std::size_t kStart = 4096;  // start of the compared part of MRAM
inline constexpr std::size_t kBuffer = kMiB;

struct Free {
  void operator()(pidcomm_artifact_manager *manager) const { std::free(manager); }
};
using Manager = std::unique_ptr<pidcomm_artifact_manager, Free>;

inline Manager manager_of(struct dpu_set_t set, const Axes &axis_len) {
  Manager manager(
      pidcomm_artifact_init(set, static_cast<std::uint32_t>(axis_len.size()), axis_len.data()));
  if (manager == nullptr)
    machine::fail(std::string("pidcomm_artifact_init: ") + pidcomm_artifact_last_error());
  return manager;
}

inline void ok(int status) {
  if (status != PIDCOMM_OK) machine::fail(pidcomm_artifact_last_error());
}

/// The group and member index of a PE.
struct Place {
  std::size_t group = 0, member = 0, groups = 1, members = 1;
};

inline Place place_of(const Axes &axis_len, const std::string &comm, std::size_t pe) {
  Place place;
  for (std::size_t axis = 0; axis < axis_len.size(); ++axis) {
    const std::size_t coordinate = pe % axis_len[axis];
    pe /= axis_len[axis];
    (comm[axis] == '1' ? place.member : place.group) +=
        coordinate * (comm[axis] == '1' ? place.members : place.groups);
    (comm[axis] == '1' ? place.members : place.groups) *= axis_len[axis];
  }
  return place;
}

inline std::size_t product(const Axes &axis_len) {
  std::size_t pes = 1;
  for (const std::uint32_t length : axis_len) pes *= length;
  return pes;
}

/// PEs of all groups: pe[group][member].
inline std::vector<std::vector<std::size_t>> groups_of(const Axes &axis_len,
                                                       const std::string &comm) {
  const Place any = place_of(axis_len, comm, 0);
  std::vector<std::vector<std::size_t>> groups(any.groups, std::vector<std::size_t>(any.members));
  for (std::size_t pe = 0; pe < product(axis_len); ++pe) {
    const Place place = place_of(axis_len, comm, pe);
    groups[place.group][place.member] = pe;
  }
  return groups;
}

inline std::int64_t element(const std::uint8_t *bytes, std::size_t size) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, size);
  const int unused = static_cast<int>(64 - 8 * size);
  return static_cast<std::int64_t>(value << unused) >> unused;
}

/// Computes into = into op from, element by element.
inline void combine(std::uint8_t *into, const std::uint8_t *from, std::size_t bytes,
                    std::size_t size, bool is_max) {
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
        return pidcomm_artifact_reduce_scatter(manager, comm.c_str(), total, start, target, buffer,
                                               size);
      case Call::kAllReduce:
        return pidcomm_artifact_all_reduce(manager, comm.c_str(), total, start, target, buffer,
                                           size, op);
      case Call::kAllGather:
        return pidcomm_artifact_allgather(manager, comm.c_str(), total, start, target, buffer);
    }
    return PIDCOMM_ERR_INTERNAL;
  }

  /// Returns the output of member q of a group. in[p] is the input of member p.
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

inline Bytes random_rows(std::size_t rows, std::size_t row_bytes, std::uint64_t seed) {
  Bytes bytes(rows * row_bytes);
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const std::uint64_t value = verify::mix(seed * 0x10001 + i);
    std::memcpy(bytes.data() + i, &value, 8);
  }
  return bytes;
}

/// Sets the sign of every element.
inline void make_negative(Bytes &bytes, std::size_t size) {
  for (std::size_t i = size - 1; i < bytes.size(); i += size) bytes[i] |= 0x80;
}

/// pes: a row for each PE of the manager's hypercube in PE order, then rows of other PEs. buffer:
/// used if it is not kBuffer.
inline void run_case(const machine::Rows &pes, const pidcomm_artifact_manager *manager,
                     const Case &it, std::size_t start, std::uint64_t seed,
                     std::size_t buffer = kBuffer) {
  const std::size_t row_bytes = std::max(start, it.target) + it.total + 64 - kStart;
  Bytes before = random_rows(pes.rows(), row_bytes, seed);
  if (it.op == 1 && seed % 2 == 0) make_negative(before, it.size);
  pes.write(kStart, row_bytes, before);
  Bytes want = before;
  for (const std::vector<std::size_t> &group :
       groups_of(Axes(manager->axis_len, manager->axis_len + manager->dimension), it.comm)) {
    std::vector<const std::uint8_t *> in;
    for (const std::size_t pe : group)
      in.push_back(before.data() + pe * row_bytes + start - kStart);
    Bytes out;
    for (std::size_t member = 0; member < group.size(); ++member) {
      if (member == 0 || it.differs_by_member()) out = it.result(in, member);
      std::memcpy(want.data() + group[member] * row_bytes + it.target - kStart, out.data(),
                  out.size());
      if (buffer != kBuffer)
        std::memcpy(want.data() + group[member] * row_bytes +
                        static_cast<std::uint32_t>(start + buffer) - kStart,
                    out.data(), out.size());
    }
  }
  ok(it.run(manager, start, buffer));
  const Bytes got = pes.read(kStart, row_bytes);
  const auto wrong = std::mismatch(got.begin(), got.end(), want.begin()).first - got.begin();
  if (got != want)
    machine::fail("call " + std::to_string(static_cast<int>(it.call)) + " comm " + it.comm +
                  " size " + std::to_string(it.size) + " op " + std::to_string(it.op) + " total " +
                  std::to_string(it.total) + " start " + std::to_string(start) + " target " +
                  std::to_string(it.target) + ": row " +
                  std::to_string(static_cast<std::size_t>(wrong) / row_bytes) + " byte " +
                  std::to_string(static_cast<std::size_t>(wrong) % row_bytes) + " is wrong");
}

inline std::vector<std::string> masks(std::size_t axes) {
  std::vector<std::string> all;
  for (std::uint32_t bits = 0; bits < 1u << axes; ++bits) {
    std::string mask;
    for (std::size_t axis = 0; axis < axes; ++axis) mask += (bits >> axis & 1) != 0 ? '1' : '0';
    all.push_back(mask);
  }
  return all;
}

inline DpuSet machine_of(std::uint32_t ranks) {
  machine::power_up(ranks);
  return DpuSet::of_ranks(ranks);
}

}  // namespace artifact_machine
