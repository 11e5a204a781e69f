// One file, because expected() and check() share the code that computes each part of an output.
#include "oracle.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

#include "elements.h"
#include "parallel.h"

namespace verify {
namespace {

// ---- where output bytes come from

/// The origin of `size` output bytes: the output bytes are the combination of the bytes at `offset`
/// of several input rows in member order, or a copy if the collective does not reduce.
struct Origin {
  std::span<const std::uint32_t> rows;
  std::size_t offset;
  std::size_t size;
};

/// The size of a row, in terms of `bytes` and N: one piece, N blocks, one block of N, or N pieces.
enum class Share { kOne, kBlocks, kBlock, kParts };

/// The input rows or output rows: whether the rows belong to PEs (else to groups), and the size of
/// a row.
struct Side {
  bool at_pes;
  Share share;
};
constexpr bool kPes = true, kGroups = false;

/// The definition of a collective: whether it reduces, its rows, and a function for the origin of
/// the output bytes from position `at` of output row `row` on.
struct Definition {
  bool reduces;
  Side before, after;
  Origin (*origin)(const Problem &problem, const Groups &groups, std::size_t row, std::size_t at);
};

Definition definition_of(int collective) {
  switch (collective) {
    case kALLTOALL:  // block q of member p -> block p of member q
      return {false,
              {kPes, Share::kBlocks},
              {kPes, Share::kBlocks},
              [](const Problem &problem, const Groups &groups, std::size_t row,
                 std::size_t at) -> Origin {
                const std::size_t block = problem.bytes / groups.group_pes, p = at / block,
                                  q = groups.member[row];
                return {groups.members(groups.group[row]).subspan(p, 1), q * block + at % block,
                        block - at % block};
              }};
    case kREDUCE_SCATTER:  // member q: block q reduced over all members
      return {true,
              {kPes, Share::kBlocks},
              {kPes, Share::kBlock},
              [](const Problem &problem, const Groups &groups, std::size_t row,
                 std::size_t at) -> Origin {
                const std::size_t block = problem.bytes / groups.group_pes, q = groups.member[row];
                return {groups.members(groups.group[row]), q * block + at, block - at};
              }};
    case kALLREDUCE:
      return {true,
              {kPes, Share::kOne},
              {kPes, Share::kOne},
              [](const Problem &problem, const Groups &groups, std::size_t row,
                 std::size_t at) -> Origin {
                return {groups.members(groups.group[row]), at, problem.bytes - at};
              }};
    /* [collective] */
    case kALLGATHER:  // all contributions in member order
      return {false,
              {kPes, Share::kBlock},
              {kPes, Share::kBlocks},
              [](const Problem &problem, const Groups &groups, std::size_t row,
                 std::size_t at) -> Origin {
                const std::size_t block = problem.bytes / groups.group_pes, p = at / block;
                return {groups.members(groups.group[row]).subspan(p, 1), at % block,
                        block - at % block};
              }};
    /* [end] */
    case kSCATTER:  // member q gets part q of its group's row
      return {false,
              {kGroups, Share::kParts},
              {kPes, Share::kOne},
              [](const Problem &problem, const Groups &groups, std::size_t row,
                 std::size_t at) -> Origin {
                return {{&groups.group[row], 1},
                        groups.member[row] * problem.bytes + at,
                        problem.bytes - at};
              }};
    case kGATHER:  // output rows are groups; part p comes from member p
      return {false,
              {kPes, Share::kOne},
              {kGroups, Share::kParts},
              [](const Problem &problem, const Groups &groups, std::size_t row,
                 std::size_t at) -> Origin {
                const std::size_t bytes = problem.bytes, p = at / bytes;
                return {groups.members(static_cast<std::uint32_t>(row)).subspan(p, 1), at % bytes,
                        bytes - at % bytes};
              }};
    case kSCAN:  // members 0 to q
      return {true,
              {kPes, Share::kOne},
              {kPes, Share::kOne},
              [](const Problem &problem, const Groups &groups, std::size_t row,
                 std::size_t at) -> Origin {
                return {groups.members(groups.group[row]).first(groups.member[row] + 1), at,
                        problem.bytes - at};
              }};
    case kEXSCAN:  // members 0 to q - 1
      return {true,
              {kPes, Share::kOne},
              {kPes, Share::kOne},
              [](const Problem &problem, const Groups &groups, std::size_t row,
                 std::size_t at) -> Origin {
                return {groups.members(groups.group[row]).first(groups.member[row]), at,
                        problem.bytes - at};
              }};
    case kREDUCE:
      return {true,
              {kPes, Share::kOne},
              {kGroups, Share::kOne},
              [](const Problem &problem, const Groups &groups, std::size_t row,
                 std::size_t at) -> Origin {
                return {groups.members(static_cast<std::uint32_t>(row)), at, problem.bytes - at};
              }};
    case kBROADCAST:
      return {false,
              {kGroups, Share::kOne},
              {kPes, Share::kOne},
              [](const Problem &problem, const Groups &groups, std::size_t row, std::size_t at)
                  -> Origin { return {{&groups.group[row], 1}, at, problem.bytes - at}; }};
  }
  reject("unknown collective " + std::to_string(collective));
}

/// Whether every run of `section` PEs has the groups of the first run: two PEs of a group have
/// residues modulo `section` whose PEs are in one group, and two PEs of a run whose residues are in
/// one group are in one group.
bool repeats_after(const Groups &groups, std::uint32_t section) {
  std::vector<std::uint32_t> first_group(
      groups.count, groups.count);  // by group: the group of the residues of its PEs
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>
      group_in_run;  // by run and group of the residues
  for (std::uint32_t pe = 0; pe < groups.pes; ++pe) {
    const std::uint32_t group = groups.group[pe], residues = groups.group[pe % section];
    if (first_group[group] == groups.count) first_group[group] = residues;
    if (first_group[group] != residues) return false;
    if (group_in_run.try_emplace({pe / section, residues}, group).first->second != group)
      return false;
  }
  return true;
}

/// Returns the PEs of a section: the shortest run of whole EGs after which the groups repeat, or
/// all PEs.
std::uint32_t section_pes(const Groups &groups) {
  for (std::uint32_t section = 8; section < groups.pes; section += 8)
    if (groups.pes % section == 0 && repeats_after(groups, section)) return section;
  return groups.pes;
}

/// Reduces the same bytes of several PE rows, for one problem.
class Reduction {
 public:
  Reduction(const Problem &problem, const Groups &groups, std::span<const std::uint8_t> before,
            std::size_t row_bytes)
      : before_(before), row_bytes_(row_bytes), group_pes_(groups.group_pes) {
    const bool is_scan = problem.collective == kSCAN || problem.collective == kEXSCAN;
    if (is_scan || (problem.fold != nullptr && !problem.fold->finish)) {
      fold_ = problem.fold ? *problem.fold : fold_of_op(problem.op, problem.type);
    } else {
      combine_ = combine_of(problem.op, problem.type);
      section_ = section_pes(groups);
      if (problem.fold) fold_ = *problem.fold;
    }
  }

  void reduce(const Origin &origin, std::size_t size, std::uint8_t *out) const {
    if (combine_ == nullptr) return reduce_in_member_order(origin, size, out);
    combine_sections(origin, size, out);
    if (fold_.finish)
      for (std::size_t at = 0; at < size; at += fold_.element_bytes)
        fold_.finish(out + at, group_pes_);
  }

 private:
  const std::uint8_t *part(std::uint32_t pe, const Origin &origin) const {
    return before_.data() + pe * row_bytes_ + origin.offset;
  }

  void reduce_in_member_order(const Origin &origin, std::size_t size, std::uint8_t *out) const {
    std::vector<const std::uint8_t *> members;
    for (std::uint32_t pe : origin.rows) members.push_back(part(pe, origin));
    for (std::size_t at = 0; at < size; at += fold_.element_bytes) {
      if (members.empty())
        std::memcpy(out + at, fold_.identity.data(), fold_.element_bytes);
      else
        fold_.reduce(out + at, members);
      for (const std::uint8_t *&member : members) member += fold_.element_bytes;
    }
  }

  void combine_sections(const Origin &origin, std::size_t size, std::uint8_t *out) const {
    std::map<std::uint32_t, std::vector<std::uint32_t>> pes_at;  // by place in a section
    for (std::uint32_t pe : origin.rows) pes_at[pe % section_].push_back(pe);
    std::vector<std::vector<std::uint8_t>> sums;  // one for each place
    for (auto &[place, pes] : pes_at) {
      std::sort(pes.begin(), pes.end());  // sections ascending
      const std::uint8_t *const first = part(pes[0], origin);
      std::vector<std::uint8_t> sum(first, first + size);
      for (std::size_t i = 1; i < pes.size(); ++i) combine_(sum.data(), part(pes[i], origin), size);
      sums.push_back(std::move(sum));
    }
    for (std::size_t i = 1; section_ != 8 && i < sums.size(); ++i)
      combine_(sums[0].data(), sums[i].data(), size);
    while (section_ == 8 && sums.size() > 1) {
      std::vector<std::vector<std::uint8_t>> pairs;
      for (std::size_t i = 0; i < sums.size(); i += 2) {
        combine_(sums[i].data(), sums[i + 1].data(), size);
        pairs.push_back(std::move(sums[i]));
      }
      sums = std::move(pairs);
    }
    std::memcpy(out, sums[0].data(), size);
  }

  const std::span<const std::uint8_t> before_;
  const std::size_t row_bytes_, group_pes_;
  Combine combine_ = nullptr;  // null if the fold reduces
  Fold fold_;
  std::uint32_t section_ = 0;
};

/// Calls use(rows, at, part) for parts of the output rows, until every row is complete: the bytes
/// `part` belong at position `at` of each of `rows`. Makes parts in parallel, and makes rows with
/// the same content (all members of an allreduce) only once.
template <class Use>
void for_each_part(const Problem &problem, std::span<const std::uint8_t> before, Use use) {
  constexpr std::size_t kMostBytes = 4096;
  const std::size_t part_bytes = kMostBytes - kMostBytes % element_bytes(problem);
  const Groups groups = groups_of(problem.axis_len, problem.mask);
  const Rows in = rows_before(problem), out = rows_after(problem);
  if (before.size() != in.bytes())
    reject("the input has " + std::to_string(before.size()) + " bytes, not " +
           std::to_string(in.bytes()));
  if (out.bytes() == 0) return;
  std::optional<Reduction> reduction;
  if (definition_of(problem.collective).reduces)
    reduction.emplace(problem, groups, before, in.row_bytes);
  const auto origin_of = definition_of(problem.collective).origin;
  const bool is_shared = problem.collective == kALLREDUCE;
  std::vector<std::uint32_t> every_row(out.count);
  for (std::size_t row = 0; row < out.count; ++row)
    every_row[row] = static_cast<std::uint32_t>(row);

  const std::size_t kinds_of_row = is_shared ? groups.count : out.count;
  const std::size_t parts = (out.row_bytes + part_bytes - 1) / part_bytes;
  parallel_for(kinds_of_row * parts, in.bytes() + out.bytes(), [&](std::size_t item) {
    const std::size_t kind = item / parts, begin = item % parts * part_bytes;
    const std::size_t size = std::min(part_bytes, out.row_bytes - begin);
    const std::span<const std::uint32_t> rows =
        is_shared ? groups.members(static_cast<std::uint32_t>(kind))
                  : std::span<const std::uint32_t>(every_row).subspan(kind, 1);
    alignas(64) std::uint8_t part[kMostBytes];
    for (std::size_t done = 0; done < size;) {
      const Origin origin = origin_of(problem, groups, rows[0], begin + done);
      const std::size_t step = std::min(size - done, origin.size);
      if (reduction)
        reduction->reduce(origin, step, part + done);
      else
        std::memcpy(part + done, before.data() + origin.rows[0] * in.row_bytes + origin.offset,
                    step);
      done += step;
    }
    use(rows, begin, std::span<const std::uint8_t>(part, size));
  });
}

// ---- comparison

/// Counts wrong elements, and keeps the first wrong element in (row, byte) order.
struct Tally {
  std::uint64_t wrong = 0;
  std::size_t row = 0, byte = 0;
  std::uint64_t got = 0, want = 0;

  void merge(const Tally &other) {
    if (other.wrong == 0) return;
    const std::uint64_t all = wrong + other.wrong;
    if (wrong == 0 || other.row < row || (other.row == row && other.byte < byte)) *this = other;
    wrong = all;
  }
};

template <class T>
bool is_nan(T value) {
  return Computed<T>(value) != Computed<T>(value);
}

template <class T>
void count_wrong(std::size_t row, std::size_t at, const std::uint8_t *got, const std::uint8_t *want,
                 std::size_t bytes, bool nan_equal, Tally &tally) {
  for (std::size_t i = 0; i < bytes; i += sizeof(T)) {
    if (std::memcmp(got + i, want + i, sizeof(T)) == 0) continue;
    T g, w;
    std::memcpy(&g, got + i, sizeof(T));
    std::memcpy(&w, want + i, sizeof(T));
    if (nan_equal && is_nan(g) && is_nan(w)) continue;
    Tally one{.wrong = 1, .row = row, .byte = at + i};
    std::memcpy(&one.got, &g, sizeof(T));
    std::memcpy(&one.want, &w, sizeof(T));
    tally.merge(one);
  }
}

/// Adds the wrong elements of `got` at (row, at) to the tally. First compares the complete memory,
/// which is usually equal.
void count_wrong(int type, std::size_t row, std::size_t at, const std::uint8_t *got,
                 const std::uint8_t *want, std::size_t bytes, bool nan_equal, Tally &tally) {
  if (std::memcmp(got, want, bytes) == 0) return;
  with_type(type, [&]<class T>(T) { count_wrong<T>(row, at, got, want, bytes, nan_equal, tally); });
}

std::string value_text(int type, std::uint64_t bits) {
  return with_type(type, [bits]<class T>(T value) {
    value = value_at<T>(reinterpret_cast<const std::uint8_t *>(&bits));
    char text[64];
    if constexpr (kIsFloat<T>)
      std::snprintf(text, sizeof text, "%.17g (0x%llx)", static_cast<double>(Computed<T>(value)),
                    static_cast<unsigned long long>(bits));
    else if constexpr (std::is_signed_v<T>)
      std::snprintf(text, sizeof text, "%lld (0x%llx)", static_cast<long long>(value),
                    static_cast<unsigned long long>(bits));
    else
      std::snprintf(text, sizeof text, "%llu (0x%llx)", static_cast<unsigned long long>(value),
                    static_cast<unsigned long long>(bits));
    return std::string(text);
  });
}

Verdict verdict_of(const Tally &tally, int type, const char *row_name) {
  if (tally.wrong == 0) return {};
  return {tally.wrong, std::string(row_name) + " " + std::to_string(tally.row) + ", element " +
                           std::to_string(tally.byte / element_bytes(type)) + " (byte " +
                           std::to_string(tally.byte) + "): got " + value_text(type, tally.got) +
                           ", want " + value_text(type, tally.want)};
}

}  // namespace

// ---- hypercube

std::vector<std::uint32_t> coordinates(const std::vector<std::uint32_t> &axis_len,
                                       std::uint32_t pe) {
  std::vector<std::uint32_t> coords;
  for (std::uint32_t len : axis_len) {
    coords.push_back(pe % len);
    pe /= len;
  }
  return coords;
}

Groups groups_of(const std::vector<std::uint32_t> &axis_len, const std::string &mask) {
  if (axis_len.empty() || mask.size() != axis_len.size() ||
      mask.find_first_not_of("01") != std::string::npos)
    reject("mask \"" + mask + "\" does not fit " + std::to_string(axis_len.size()) + " axes");
  std::uint64_t selected = 1, unselected = 1;
  for (std::size_t axis = 0; axis < mask.size(); ++axis) {
    (mask[axis] == '1' ? selected : unselected) *= axis_len[axis];
    if (axis_len[axis] == 0 || selected * unselected > std::numeric_limits<std::int32_t>::max())
      reject("an axis length is 0, or the axes have too many PEs");
  }
  Groups groups;
  groups.group_pes = static_cast<std::uint32_t>(selected);
  groups.count = static_cast<std::uint32_t>(unselected);
  groups.pes = groups.group_pes * groups.count;
  groups.pe_of.resize(groups.pes);
  for (std::uint32_t pe = 0; pe < groups.pes; ++pe) {
    const std::vector<std::uint32_t> coords = coordinates(axis_len, pe);
    std::uint32_t group = 0, group_stride = 1, member = 0, member_stride = 1;
    for (std::size_t axis = 0; axis < mask.size(); ++axis) {
      std::uint32_t &index = mask[axis] == '1' ? member : group;
      std::uint32_t &stride = mask[axis] == '1' ? member_stride : group_stride;
      index += coords[axis] * stride;
      stride *= axis_len[axis];
    }
    groups.group.push_back(group);
    groups.member.push_back(member);
    groups.pe_of[group * groups.group_pes + member] = pe;
  }
  return groups;
}

namespace {

/// Returns the input rows or output rows of a collective.
Rows rows_of(const Problem &problem, bool is_before) {
  const Groups groups = groups_of(problem.axis_len, problem.mask);
  const Definition definition = definition_of(problem.collective);
  const bool has_blocks =
      definition.before.share == Share::kBlocks || definition.after.share == Share::kBlocks;
  if (has_blocks && problem.bytes % (groups.group_pes * element_bytes(problem)) != 0)
    reject(std::to_string(problem.bytes) + " bytes do not divide into " +
           std::to_string(groups.group_pes) + " blocks");
  if (problem.bytes % element_bytes(problem) != 0)
    reject(std::to_string(problem.bytes) + " bytes are not whole elements");
  const auto [at_pes, share] = is_before ? definition.before : definition.after;
  const std::size_t row_bytes = share == Share::kBlock   ? problem.bytes / groups.group_pes
                                : share == Share::kParts ? problem.bytes * groups.group_pes
                                                         : problem.bytes;
  return {at_pes ? groups.pes : groups.count, row_bytes, at_pes};
}

}  // namespace

Rows rows_before(const Problem &problem) { return rows_of(problem, true); }
Rows rows_after(const Problem &problem) { return rows_of(problem, false); }

std::size_t element_bytes(int type) {
  return with_type(type, []<class T>(T) { return sizeof(T); });
}

std::size_t element_bytes(const Problem &problem) {
  return problem.fold ? problem.fold->element_bytes : element_bytes(problem.type);
}

bool is_float(int type) {
  return with_type(type, []<class T>(T) { return kIsFloat<T>; });
}

// ---- results

void expected(const Problem &problem, std::span<const std::uint8_t> before,
              std::span<std::uint8_t> after) {
  const Rows out = rows_after(problem);
  if (after.size() != out.bytes())
    reject("the output has " + std::to_string(after.size()) + " bytes, not " +
           std::to_string(out.bytes()));
  for_each_part(
      problem, before,
      [&](std::span<const std::uint32_t> rows, std::size_t at, std::span<const std::uint8_t> part) {
        for (std::uint32_t row : rows)
          std::memcpy(after.data() + row * out.row_bytes + at, part.data(), part.size());
      });
}

std::vector<std::uint8_t> expected(const Problem &problem, std::span<const std::uint8_t> before) {
  std::vector<std::uint8_t> after(rows_after(problem).bytes());
  expected(problem, before, after);
  return after;
}

Verdict check(const Problem &problem, std::span<const std::uint8_t> before,
              std::span<const std::uint8_t> got) {
  const Rows out = rows_after(problem);
  if (got.size() != out.bytes())
    reject("the result has " + std::to_string(got.size()) + " bytes, not " +
           std::to_string(out.bytes()));
  const bool nan_equal = definition_of(problem.collective).reduces;
  // Elements that are no numbers of the type must have equal bytes.
  const int type = element_bytes(problem) == element_bytes(problem.type) ? problem.type : kUINT8;
  Tally tally;
  std::mutex tally_mutex;
  for_each_part(
      problem, before,
      [&](std::span<const std::uint32_t> rows, std::size_t at, std::span<const std::uint8_t> part) {
        Tally mine;
        for (std::uint32_t row : rows)
          count_wrong(type, row, at, got.data() + row * out.row_bytes + at, part.data(),
                      part.size(), nan_equal, mine);
        if (mine.wrong == 0) return;
        const std::lock_guard lock(tally_mutex);
        tally.merge(mine);
      });
  return verdict_of(tally, type, out.at_pes ? "PE" : "host row");
}

void move(std::span<const Message> messages, std::size_t row_bytes,
          std::span<const std::uint8_t> before, std::span<std::uint8_t> after) {
  constexpr std::uint32_t kFill = 0xFFFFFFFF;
  const auto row_of = [&](auto rows, std::uint32_t pe, std::uint64_t end) {
    if (end > row_bytes || pe >= rows.size() / row_bytes)
      reject("a message leaves the rows: byte " + std::to_string(end) + " of PE " +
             std::to_string(pe));
    return rows.subspan(pe * row_bytes, row_bytes);
  };
  for (const Message &m : messages)
    for (std::uint64_t run = 0; run < std::max(m.runs, 1u); ++run)
      for (std::uint64_t byte = 0; byte < m.bytes; byte += PIDCOMM_WORD_BYTES) {
        const std::uint64_t from = m.from + run * m.from_step + byte,
                            to = m.to + run * m.to_step + byte;
        std::uint64_t word = std::uint64_t{m.from_step} << 32 | m.from;
        if (m.from_pe != kFill)
          std::memcpy(&word, &row_of(before, m.from_pe, from + sizeof word)[from], sizeof word);
        std::memcpy(&row_of(after, m.to_pe, to + sizeof word)[to], &word, sizeof word);
      }
}

Verdict compare(int type, std::size_t row_bytes, std::span<const std::uint8_t> got,
                std::span<const std::uint8_t> want, bool nan_equal, const char *row_name) {
  if (got.size() != want.size() || (row_bytes == 0 && !got.empty()) ||
      (row_bytes != 0 && got.size() % row_bytes != 0) || row_bytes % element_bytes(type) != 0)
    reject("cannot compare " + std::to_string(got.size()) + " with " + std::to_string(want.size()) +
           " bytes in rows of " + std::to_string(row_bytes));
  Tally tally;
  for (std::size_t at = 0; at < got.size(); at += row_bytes)
    count_wrong(type, at / row_bytes, 0, got.data() + at, want.data() + at, row_bytes, nan_equal,
                tally);
  return verdict_of(tally, type, row_name);
}

}  // namespace verify
