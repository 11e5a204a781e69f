/* isca24.h: the calls as the PID-Comm paper prints them (ISCA 2024, figure 10), implemented with
 * the functions of pidcomm.h:
 *
 *   hypercube_manager *manager = init_hypercube_manager(dpu_set, 3, axis_len);
 *   pidcomm_reduce_scatter(manager, "010", 8192, 0, 0, sizeof(uint32_t), PIDCOMM_SUM);
 *
 * The parameter `type` of these calls is a pidcomm_type or the size of an integer word in bytes: 1,
 * 2, 4 or 8. A word size is valid for data movement and for the operators sum, prod, and, or, xor.
 * The operators min and max differ between signed and unsigned types, so they return ERR_TYPE for a
 * word size. A word size always means integers: if type is sizeof(float), a sum adds integers. */
#ifndef PIDCOMM_ISCA24_H
#define PIDCOMM_ISCA24_H

#include <pidcomm/pidcomm.h>

typedef pidcomm_hypercube hypercube_manager;

/* Calls pidcomm_hypercube_create and returns the hypercube, or NULL on error (see
 * pidcomm_last_error). */
static inline hypercube_manager *init_hypercube_manager(struct dpu_set_t set, uint32_t axes,
                                                        const uint32_t *axis_len) {
  hypercube_manager *manager = NULL;
  pidcomm_hypercube_create(set, axes, axis_len, &manager);
  return manager;
}

/* If `type` is a word size in bytes and op is not min or max, returns the type of integer words of
 * this size. Otherwise returns `type` unchanged. */
static inline int pidcomm_isca24_type(int type, int op) {
  if (op == PIDCOMM_MIN || op == PIDCOMM_MAX) return type;
  switch (type) {
    case 1:
      return PIDCOMM_UINT8;
    case 2:
      return PIDCOMM_UINT16;
    case 4:
      return PIDCOMM_UINT32;
    case 8:
      return PIDCOMM_UINT64;
    default:
      return type;
  }
}

#define PIDCOMM_OP_0 PIDCOMM_SUM
#define PIDCOMM_OP_1 op
#define PIDCOMM_ROW(ENUM, code, name, op, before, after, ...)                       \
  static inline int pidcomm_isca24_##name(hypercube_manager *cube,                  \
                                          PIDCOMM_PARAMETERS_##op##before##after) { \
    type = pidcomm_isca24_type(type, PIDCOMM_OP_##op);                              \
    return pidcomm_##name(cube, PIDCOMM_ARGUMENTS_##op##before##after);             \
  }
PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW

/* The collectives of the paper. Collectives that are not in the paper accept only a pidcomm_type,
 * not a word size. */
#define pidcomm_alltoall pidcomm_isca24_alltoall
#define pidcomm_reduce_scatter pidcomm_isca24_reduce_scatter
#define pidcomm_allreduce pidcomm_isca24_allreduce
#define pidcomm_allgather pidcomm_isca24_allgather
#define pidcomm_scatter pidcomm_isca24_scatter
#define pidcomm_gather pidcomm_isca24_gather
#define pidcomm_reduce pidcomm_isca24_reduce
#define pidcomm_broadcast pidcomm_isca24_broadcast

#endif /* PIDCOMM_ISCA24_H */
