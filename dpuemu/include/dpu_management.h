/// dpu_management.h: properties of ranks and DPUs. Names and signatures match the UPMEM SDK.
///
/// Most functions of this header do not return a status. For a rank or DPU that is not allocated,
/// these functions return NULL, false, -1, or an integer whose bits are all 1.
#ifndef DPU_MANAGEMENT_H
#define DPU_MANAGEMENT_H

#include <dpu_description.h>
#include <dpu_error.h>
#include <dpu_macro_utils.h>
#include <dpu_types.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/// Returns the DPU at (chip, bank), even if it is disabled; returns NULL if chip or bank is
/// above 7.
struct dpu_t *dpu_get(struct dpu_rank_t *rank, dpu_slice_id_t slice_id, dpu_member_id_t dpu_id);

/// Returns rank id << 16 | chip << 8 | bank.
dpu_id_t dpu_get_id(struct dpu_t *dpu);

/// Returns the number of the rank in the machine, 0 to 39. Rank r is on channel r /
/// ranks_per_channel (dpuemu_get_machine).
dpu_id_t dpu_get_rank_id(struct dpu_rank_t *rank);

/// Allocates one rank, as dpu_alloc_ranks; frees such a rank, as dpu_free. Errors: those of
/// dpu_alloc_ranks and of dpu_free.
dpu_error_t dpu_get_rank_of_type(const char *profile, struct dpu_rank_t **rank);
dpu_error_t dpu_free_rank(struct dpu_rank_t *rank);

/// Stores the description of the machine's ranks. Errors: DPU_ERR_INVALID_PROFILE as dpu_alloc,
/// DPU_ERR_INTERNAL if `description` is NULL.
dpu_error_t dpu_get_profile_description(const char *profile, dpu_description_t *description);

/// Returns the description of the machine's ranks.
dpu_description_t dpu_get_description(struct dpu_rank_t *rank);

/// Take and release the rank's lock, which no other call uses. dpu_trylock_rank returns 0 if it
/// took the lock, else EBUSY.
void dpu_lock_rank(struct dpu_rank_t *rank);
int dpu_trylock_rank(struct dpu_rank_t *rank);
void dpu_unlock_rank(struct dpu_rank_t *rank);

/// Returns the NUMA node of the rank's memory, or -1 if the node is unknown.
int dpu_get_rank_numa_node(struct dpu_rank_t *rank);

struct dpu_rank_t *dpu_get_rank(struct dpu_t *dpu);

/// Return the chip (0 to 7) and the bank (0 to 7) of a DPU.
dpu_slice_id_t dpu_get_slice_id(struct dpu_t *dpu);
dpu_member_id_t dpu_get_member_id(struct dpu_t *dpu);

bool dpu_is_enabled(struct dpu_t *dpu);

/// Returns a set that contains one rank. `*rank` must outlive the set.
struct dpu_set_t dpu_set_from_rank(struct dpu_rank_t **rank);
struct dpu_set_t dpu_set_from_dpu(struct dpu_t *dpu);

/// dpu_rank_from_set returns the rank of a set of one rank. dpu_from_set returns the DPU of a set
/// of one DPU. For all other sets, these functions return NULL.
struct dpu_rank_t *dpu_rank_from_set(struct dpu_set_t set);
struct dpu_t *dpu_from_set(struct dpu_set_t set);

/// STRUCT_DPU_FOREACH(rank, dpu[, i]): `dpu` (a struct dpu_t * variable) becomes each enabled DPU
/// of the rank, in the order of DPU_FOREACH.
#define STRUCT_DPU_FOREACH(rank, ...) \
  _CONCAT(STRUCT_DPU_FOREACH_, DPU_MACRO_VARIANT(__VA_ARGS__))(rank, __VA_ARGS__)
#define STRUCT_DPU_FOREACH_1(rank, dpu)                         \
  for (struct dpu_iterator_t dpu_it_ = dpu_iterator_from(rank); \
       (dpu) = dpu_it_.next, dpu_it_.has_next; dpu_iterator_next(&dpu_it_))
#define STRUCT_DPU_FOREACH_2(rank, dpu, i)                      \
  for (struct dpu_iterator_t dpu_it_ = dpu_iterator_from(rank); \
       (i) = dpu_it_.count, (dpu) = dpu_it_.next, dpu_it_.has_next; dpu_iterator_next(&dpu_it_))

/// State of the loop STRUCT_DPU_FOREACH.
struct dpu_iterator_t {
  struct dpu_rank_t *rank;
  uint32_t count;
  uint32_t next_idx;
  bool has_next;
  struct dpu_t *next;
};
struct dpu_iterator_t dpu_iterator_from(struct dpu_rank_t *rank);
void dpu_iterator_next(struct dpu_iterator_t *iterator);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif  // DPU_MANAGEMENT_H
