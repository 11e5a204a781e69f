/* operators.h: reductions with operators of the program, averages, the place of the smallest and of
 * the largest element, and scans.
 *
 * An operator combines elements of a fixed size: numbers or structs. It must be associative. The
 * library combines the elements of a group in member order, from left to right, so an operator need
 * not be commutative.
 *
 * A pidcomm_request whose `operation` is not NULL reduces with this operator: allreduce,
 * reduce_scatter, reduce, and the scans below. An operator with `combine` replaces type and op. The
 * bytes of a block must be a multiple of 8 and of element_bytes. A gather takes an operator without
 * combine, whose `store` changes the elements on their way to the host rows (with 1 member).
 *
 * Scans: member q of a group receives the reduction of the blocks of members 0 .. q (scan), or
 * 0 .. q - 1 (exscan). Member 0 of an exscan receives the identity of the operator. Scans work with
 * all types and operators of reductions, and have the windows and sizes of allreduce.
 *
 * Techniques: `tile` and `conventional`; the pr techniques run as `conventional`, and `baseline`,
 * `ring` and `tree` return ERR_OPTION. `tile` loads and stores each line once, with one exception:
 * on shapes without a lane split, reduce_scatter with `combine` loads a line once for each
 * entangled group that has one of its blocks. Hypercubes over hosts return ERR_ARGUMENT. */
#ifndef PIDCOMM_OPERATORS_H
#define PIDCOMM_OPERATORS_H

#include <pidcomm/pidcomm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An operator: functions on arrays of `count` elements.
 *
 *   load     partials[i] = elements[i]
 *   combine  partials[i] = partials[i] (op) elements[i]
 *   store    elements[i] = partials[i], the reduction of `members` members
 *
 * Several threads call the functions at once, on different data. Some elements may be undefined:
 * padding, and lanes without a PE. The functions must not fault on them, call the library, throw or
 * jump. Pointers may be unaligned, except `partials` of load and combine (64 bytes).
 *
 * Use partial results larger than elements to keep sums exact. If partial_bytes is 0, the partial
 * results are elements, and load and store are NULL. If combine is NULL, the library reduces with
 * the type and op of the request, then calls store. Elements and partials are then the same memory,
 * and element_bytes is the size of the type. This is as fast as op alone, except for op and, or,
 * xor and types of 1 byte.
 *
 * identity points to an element for member 0 of exscan. If it is NULL, an operator without combine
 * has the identity of op, and other operators cannot run exscan. The library copies the struct and
 * the identity before a call returns. The functions and the memory behind `context`, which the
 * functions receive, must stay valid until the call has ended (pidcomm_wait). */
typedef struct pidcomm_operator {
  PIDCOMM_SIZE(struct pidcomm_operator);
  size_t element_bytes; /* 1 to 4096 */
  size_t partial_bytes; /* 0 to 4096 */
  void (*load)(void *partials, const void *elements, size_t count, const void *context);
  void (*combine)(void *partials, const void *elements, size_t count, const void *context);
  void (*store)(void *elements, const void *partials, size_t count, size_t members,
                const void *context);
  const void *identity;
  const void *context;
} pidcomm_operator;
#define PIDCOMM_OPERATOR_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_operator)

/* X(name): operators of the library, for every element type (a pidcomm_type).
 *
 * avg: the exact sum of integers, divided by N and rounded to nearest, ties to even. The sum of
 * 16-bit floats in float32, divided by N, then rounded to the type. For float32 and float64, the
 * result of op PIDCOMM_SUM, which the request must have, divided by N. In scans, N is the number of
 * members combined so far.
 * argmin, argmax: an element is a value of the type and an index: uint32_t at byte 4, or, for types
 * of 8 bytes, uint64_t at byte 8. The result is the smallest (largest) value with its index. Of
 * equal values, the smallest index wins. NaN is smaller (larger) than all numbers. */
#define PIDCOMM_OPERATORS(X) X(avg) X(argmin) X(argmax)

/* Stores an operator of PIDCOMM_OPERATORS in *operation, for example pidcomm_operator_avg(type,
 * &operation). Errors: ERR_TYPE (the type is unknown), ERR_ARGUMENT (operation is null). */
#define PIDCOMM_ROW(name) \
  PIDCOMM_API int pidcomm_operator_##name(int type, pidcomm_operator *operation);
PIDCOMM_OPERATORS(PIDCOMM_ROW)
#undef PIDCOMM_ROW

/* The same for the sum of floats, as for avg, times *factor; the product is computed in float64,
 * then rounded to the type (16-bit floats: to float32, then to the type). `factor` must stay valid
 * until the call has ended. Errors: ERR_TYPE (not a float), ERR_ARGUMENT (a pointer is null). */
PIDCOMM_API int pidcomm_operator_scaled_sum(int type, const double *factor,
                                            pidcomm_operator *operation);

/* The codes of scans in a pidcomm_request. */
#define PIDCOMM_ROW(ENUM, code, name) PIDCOMM_##ENUM = code,
enum { PIDCOMM_SCANS(PIDCOMM_ROW) };
#undef PIDCOMM_ROW

/* Run a scan with default options. Errors: those of pidcomm_allreduce. */
#define PIDCOMM_ROW(ENUM, code, name) \
  PIDCOMM_API int pidcomm_##name(pidcomm_hypercube *cube, PIDCOMM_PARAMETERS_111);
PIDCOMM_SCANS(PIDCOMM_ROW)
#undef PIDCOMM_ROW

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_OPERATORS_H */
