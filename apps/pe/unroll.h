/* UNROLL before a loop with a constant number of steps, at most 8, unrolls it completely, with GCC and with clang. */
#ifndef PIDCOMM_APPS_UNROLL_H
#define PIDCOMM_APPS_UNROLL_H

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

#endif
