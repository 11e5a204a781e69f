/* UNROLL before a loop with at most 8 steps, a constant number, unrolls the loop completely, with
 * GCC and with clang. */
#ifndef PIDCOMM_APPS_UNROLL_H
#define PIDCOMM_APPS_UNROLL_H

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

#endif
