#include "plan/fold.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include "base/error.h"
#include "base/geometry.h"
#include "base/small_float.h"

namespace pidcomm {

namespace {

constexpr std::size_t kLargestElement = 4096;

/// Returns the identity of an operator of PIDCOMM_OPS.
template <class T>
T identity_value(int op) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, pidcomm_float16> || std::is_same_v<T, pidcomm_bfloat16>) {
    T half;
    narrow(identity_value<float>(op), half);
    return half;
  } else {
    switch (op) {
      case PIDCOMM_PROD:
        return 1;
      case PIDCOMM_MIN:
        return Limits::has_infinity ? Limits::infinity() : Limits::max();
      case PIDCOMM_MAX:
        return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
      case PIDCOMM_AND:
        return static_cast<T>(-1);
      default:
        return 0;
    }
  }
}

std::vector<std::byte> identity_of(int op, const ElementType &type) {
  std::vector<std::byte> bytes(type.size_bytes);
  const auto store = [&](auto value) { std::memcpy(bytes.data(), &value, sizeof value); };
  switch (type.code) {
#define PIDCOMM_ROW(ENUM, code, name, ctype, kind) \
  case code:                                       \
    store(identity_value<ctype>(op));              \
    break;
    PIDCOMM_TYPES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  }
  return bytes;
}

/// The number of the set of each entangled group, by union-find.
class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  uint32_t of(uint32_t eg) {
    while (parent_[eg] != eg) eg = parent_[eg] = parent_[parent_[eg]];
    return eg;
  }
  /// The lowest number becomes the number of both sets.
  void join(uint32_t a, uint32_t b) {
    a = of(a);
    b = of(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<uint32_t> parent_;
};

/// Cuts the entangled groups of a set into the smallest batches.
void add_batches(FoldSet &set) {
  std::vector<uint32_t> count(set.groups.size()), end(set.groups.size());  // by group, so far
  uint32_t incomplete = 0;  // groups whose members so far are not members 0 .. n - 1
  FoldSet::Batch batch{};
  for (uint32_t e = 0; e < set.egs.size(); ++e) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const auto [group, member] = set.pes[e * kLanes + lane];
      if (group == kNoGroup) continue;
      const bool was_incomplete = count[group] != end[group];
      ++count[group];
      end[group] = std::max(end[group], member + 1);
      const bool is_incomplete = count[group] != end[group];
      incomplete = incomplete - was_incomplete + is_incomplete;
      set.order.push_back(e * kLanes + lane);
      ++batch.pes;
    }
    ++batch.egs;
    if (incomplete != 0) continue;
    const auto first = set.order.begin() + batch.first_pe;
    std::stable_sort(first, set.order.end(),
                     [&](uint32_t a, uint32_t b) { return set.pes[a].member < set.pes[b].member; });
    set.batches.push_back(batch);
    batch = {batch.first_eg + batch.egs, 0, batch.first_pe + batch.pes, 0};
  }
}

/// Moves the set of the other bank of a pair behind the set of the first bank. set_of: the set of
/// each entangled group.
std::vector<FoldSet> with_pairs_together(std::vector<FoldSet> sets,
                                         const std::vector<uint32_t> &set_of) {
  std::vector<FoldSet> ordered;
  std::vector<bool> is_moved(sets.size());
  const auto move = [&](uint32_t number) {
    if (!is_moved[number]) ordered.push_back(std::move(sets[number]));
    is_moved[number] = true;
  };
  for (uint32_t eg = 0; eg < set_of.size(); ++eg) {
    move(set_of[eg]);
    if (eg % kBanks < kPairEgs && eg + kPairEgs < set_of.size()) move(set_of[eg + kPairEgs]);
  }
  return ordered;
}

}  // namespace

void check_operator(const pidcomm_operator &operation, const ElementType &type) {
  const auto reject = [](const auto &...text) {
    fail(PIDCOMM_ERR_ARGUMENT, "operation->", text...);
  };
  const auto check_size = [&](const char *name, uint64_t bytes, uint64_t least) {
    if (bytes < least || bytes > kLargestElement)
      reject(name, " is ", bytes, "; it must be ", least, " to ", kLargestElement);
  };
  check_size("element_bytes", operation.element_bytes, 1);
  check_size("partial_bytes", operation.partial_bytes, 0);
  const bool combines = operation.combine != nullptr, has_partials = operation.partial_bytes != 0;
  const auto check_function = [&](const char *name, bool is_there, bool is_needed) {
    if (is_there != is_needed)
      reject(name, is_there ? " must be null" : " is null", " in an operator ",
             combines ? "with" : "without", " combine, with partial_bytes ",
             operation.partial_bytes);
  };
  if (!combines && has_partials)
    reject("combine is null, so partial_bytes (", operation.partial_bytes, ") must be 0");
  check_function("load", operation.load != nullptr, combines && has_partials);
  check_function("store", operation.store != nullptr, !combines || has_partials);
  if (!combines && operation.element_bytes != type.size_bytes)
    reject("combine is null, so element_bytes (", operation.element_bytes, ") must be the ",
           type.size_bytes, " bytes of ", name_of_type(type.code));
}

bool are_same(const pidcomm_operator &a, const pidcomm_operator &b) {
  return a.size == b.size && a.element_bytes == b.element_bytes &&
         a.partial_bytes == b.partial_bytes && a.load == b.load && a.combine == b.combine &&
         a.store == b.store && a.context == b.context;
}

Fold Fold::of(int collective, const pidcomm_operator *operation, const ElementType &type, int op) {
  Fold fold;
  fold.result = collective == PIDCOMM_SCAN     ? Result::up_to_own
                : collective == PIDCOMM_EXSCAN ? Result::before_own
                                               : Result::of_all;
  const bool has_operation = operation != nullptr && operation->combine != nullptr;
  if (has_operation) {
    fold.operation = *operation;
    fold.operation.identity = nullptr;
    fold.unit_bytes = std::lcm(kWordBytes, uint64_t{operation->element_bytes});
  }
  if (fold.result != Result::before_own) return fold;
  fold.has_own_identity = operation != nullptr && operation->identity != nullptr;
  if (fold.has_own_identity) {
    const auto *const bytes = static_cast<const std::byte *>(operation->identity);
    fold.identity.assign(bytes, bytes + operation->element_bytes);
  } else if (has_operation) {
    fail(PIDCOMM_ERR_ARGUMENT, "operation->identity is null; exscan needs it for member 0");
  } else {
    fold.identity = identity_of(op, type);
  }
  return fold;
}

std::vector<FoldSet> fold_sets_of(const Hypercube &cube, const Grouping &grouping) {
  const uint32_t egs = (cube.pes + kLanes - 1) / kLanes;
  std::vector<uint32_t> places(cube.pes);
  Sets sets(egs);
  for (uint32_t group = 0; group < grouping.groups; ++group)
    for (uint32_t member = 0; member < grouping.group_pes; ++member) {
      const uint32_t pe = grouping.pe_at(group, member);
      places[pe] = cube.place_of(pe);
      sets.join(places[grouping.pe_at(group, 0)] / kLanes, places[pe] / kLanes);
    }

  std::vector<FoldSet> result;
  std::vector<uint32_t> set_of(egs), index_of(egs), group_index(grouping.groups, kNoGroup);
  for (uint32_t eg = 0; eg < egs; ++eg) {
    const uint32_t lowest = sets.of(eg);
    if (lowest == eg) {
      set_of[eg] = static_cast<uint32_t>(result.size());
      result.emplace_back();
    }
    FoldSet &set = result[set_of[eg] = set_of[lowest]];
    index_of[eg] = static_cast<uint32_t>(set.egs.size());
    set.egs.push_back(eg);
    set.pes.resize(set.egs.size() * kLanes, {kNoGroup, 0});
  }
  for (uint32_t pe = 0; pe < cube.pes; ++pe) {
    const uint32_t eg = places[pe] / kLanes, group = grouping.group_of(pe);
    FoldSet &set = result[set_of[eg]];
    if (group_index[group] == kNoGroup) {
      group_index[group] = static_cast<uint32_t>(set.groups.size());
      set.groups.push_back(group);
    }
    set.pes[index_of[eg] * kLanes + places[pe] % kLanes] = {group_index[group],
                                                            grouping.member_of(pe)};
  }
  for (FoldSet &set : result) add_batches(set);
  return with_pairs_together(std::move(result), set_of);
}

}  // namespace pidcomm
