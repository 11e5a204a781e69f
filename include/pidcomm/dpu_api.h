/* dpu_api.h: includes the UPMEM host API, dpu.h, with C linkage in C++ too. The headers of the UPMEM SDK do not declare extern "C", so C++
 * programs that include dpu.h directly must declare it themselves. */
#ifndef PIDCOMM_DPU_API_H
#define PIDCOMM_DPU_API_H

/* The headers that dpu.h includes. They come first, so that the braces below do not contain C++ headers. */
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
