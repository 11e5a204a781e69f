// Folds: reductions that combine rows of elements in member order. Scans are folds, and so are
// reductions with an operator of the program that has `combine`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pidcomm/operators.h"
#include "plan/request.h"
#include "topology/hypercube.h"

namespace pidcomm {

/// What a fold combines, and what each member receives.
struct Fold {
  enum class Result { of_all, up_to_own, before_own };

  Result result = Result::of_all;
  pidcomm_operator operation{};     // with element_bytes 0: the type and operator of the plan
  std::vector<std::byte> identity;  // one element; of Result::before_own
  bool has_own_identity = false;    // the program gave the identity
  uint64_t unit_bytes = 8;          // a multiple of words and elements

  bool scans() const { return result != Result::of_all; }
  bool has_operation() const { return operation.element_bytes != 0; }
  /// The bytes of partial results for `bytes` bytes of elements.
  uint64_t partial_bytes(uint64_t bytes) const {
    return operation.partial_bytes == 0 ? bytes
                                        : bytes / operation.element_bytes * operation.partial_bytes;
  }
  /// Returns the largest multiple of unit_bytes up to `bytes`, at least unit_bytes.
  uint64_t whole_units(uint64_t bytes) const {
    return bytes < unit_bytes ? unit_bytes : bytes / unit_bytes * unit_bytes;
  }
  /// Returns the fold of a reduction or scan. operation: the checked operator of the program, or
  /// null. Errors: ERR_ARGUMENT (the identity is missing).
  static Fold of(int collective, const pidcomm_operator *operation, const ElementType &type,
                 int op);
};

/// Checks the operator of a request. type: the element type of the request, if the operator has no
/// `combine`. Errors: ERR_ARGUMENT.
void check_operator(const pidcomm_operator &operation, const ElementType &type);

/// Whether two operators have the same fields, without the identities.
bool are_same(const pidcomm_operator &a, const pidcomm_operator &b);

/// Whether the code is PIDCOMM_SCAN or PIDCOMM_EXSCAN.
constexpr bool is_scan(int collective) {
  return collective == PIDCOMM_SCAN || collective == PIDCOMM_EXSCAN;
}

/// The group and member of a lane of an entangled group.
struct FoldPe {
  uint32_t group;  // index in FoldSet::groups; kNoGroup if the hypercube has no such PE
  uint32_t member;
};
inline constexpr uint32_t kNoGroup = ~0u;

/// Entangled groups that share collective groups: no group has PEs outside the set, and no smaller
/// set has this property.
///
/// A fold loads the entangled groups batch by batch, and combines the PEs of a batch in the order
/// of members. The members in a batch precede the members of their group in later batches.
struct FoldSet {
  struct Batch {
    uint32_t first_eg, egs;  // indices in FoldSet::egs
    uint32_t first_pe, pes;  // indices in FoldSet::order
  };
  std::vector<uint32_t> egs;     // ascending
  std::vector<FoldPe> pes;       // lane l of egs[e] is pes[8 * e + l]
  std::vector<uint32_t> order;   // indices in pes
  std::vector<uint32_t> groups;  // their numbers
  std::vector<Batch> batches;
};

/// Returns the sets of a hypercube under a mask. Cost: O(PEs * log PEs).
std::vector<FoldSet> fold_sets_of(const Hypercube &cube, const Grouping &grouping);

}  // namespace pidcomm
