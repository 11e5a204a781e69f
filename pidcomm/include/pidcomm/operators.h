/* operators.h: reductions with operators of the program, averages, the place of the smallest and of
 * the largest element, and scans.
 *
 * An operator combines elements of a fixed size: numbers or structs. It must be associative. The
 * library combines the elements of a group in member order, from left to right, so an operator need
 * not be commutative.
 *
 * A pidcomm_request whose `operation` is not NULL reduces with this operator: allreduce,
 * reduce_scatter, reduce, and the scans below. An operator with `combine` replaces type and op. The
 * bytes of a block must be a multiple of 8 and of element_bytes.
 *
 * Scans: member q of a group receives the reduction of the blocks of members 0 .. q (scan), or
 * 0 .. q - 1 (exscan). Member 0 of an exscan receives the identity of the operator. Scans work with
 * all types and operators of reductions, and have the windows and sizes of allreduce.
 *
 * Techniques: `tile` and `conventional`; the pr techniques run as `conventional`, and `ring` and
 * `tree` return ERR_OPTION. Hypercubes over hosts return ERR_ARGUMENT. */
#ifndef PIDCOMM_OPERATORS_H
#define PIDCOMM_OPERATORS_H

#include <pidcomm/pidcomm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Combines `count` elements at a time. The functions run on several threads at once, on different
 * data, also on undefined elements. They must not call the library, throw or jump. Pointers may be
 * unaligned, except `partials` of load and combine (64 bytes).
 *
 *   load     partials[i] = elements[i]
 *   combine  partials[i] = partials[i] (op) elements[i]
 *   store    elements[i] = partials[i], the reduction of `members` members
 *
 * Partial results that are larger than elements keep sums exact. If partial_bytes is 0, the partial
 * results are elements, and load and store are NULL. If combine is NULL, the library reduces with
 * the type and op of the request, as fast as without an operator, and then calls store, in which
 * elements and partials are the same memory; element_bytes is the size of the type.
 *
 * identity points to element_bytes bytes, which the library copies before the call returns; only
 * exscan needs it. The call passes `context` to the functions. */
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

/* X(name): operators that the library provides, for every element type (a
 * pidcomm_type).
 *
 * average: the exact sum of integers, divided by N and rounded to nearest, ties to even. Floats of
 * 16 bits are added in float32; the sum is divided by N, then rounded once. For float32 and
 * float64, divides the result of op PIDCOMM_SUM, which the request must have, by N.
 * scaled_sum: the same sums of floats, times the number that the context points to.
 * argmin, argmax: an element is a value of the type and an index: uint32_t at byte 4, or, for types
 * of 8 bytes, uint64_t at byte 8. The result is the smallest (largest) value with its index. Of
 * equal values, the smallest index wins. NaN is smaller (larger) than all numbers. */
#define PIDCOMM_OPERATORS(X) X(average) X(scaled_sum) X(argmin) X(argmax)

/* Stores an operator of PIDCOMM_OPERATORS in *operation, for example pidcomm_operator_average(type,
 * &operation). Errors: ERR_TYPE (the type is unknown; an integer for scaled_sum), ERR_ARGUMENT
 * (operation is null). The context of scaled_sum is NULL: set it to a `const double *`. */
#define PIDCOMM_ROW(name) \
  PIDCOMM_API int pidcomm_operator_##name(int type, pidcomm_operator *operation);
PIDCOMM_OPERATORS(PIDCOMM_ROW)
#undef PIDCOMM_ROW

/* The codes of scans in a pidcomm_request. */
enum { PIDCOMM_SCAN = 29, PIDCOMM_EXSCAN = 30 };

/* Run a scan with default options. Errors: those of pidcomm_allreduce. */
PIDCOMM_API int pidcomm_scan(pidcomm_hypercube *cube, const char *mask, size_t bytes, size_t src,
                             size_t dst, int type, int op);
PIDCOMM_API int pidcomm_exscan(pidcomm_hypercube *cube, const char *mask, size_t bytes, size_t src,
                               size_t dst, int type, int op);

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_OPERATORS_H */
