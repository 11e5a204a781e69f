/* dpu_api.h: includes dpu.h, the UPMEM host API, with C linkage in C and C++. The headers of the
 * UPMEM SDK do not declare extern "C", so C++ programs that include dpu.h directly must declare it
 * themselves. */
#ifndef PIDCOMM_DPU_API_H
#define PIDCOMM_DPU_API_H

/* The headers that dpu.h includes. They stand before `extern "C" {`, because C++ headers must not
 * be inside its braces. */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

#include <dpu.h>

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_DPU_API_H */
