/* dpu_api.h: the UPMEM host API, dpu.h, with the linkage of its library in C++ too: the headers of the UPMEM SDK are C headers that do not
 * say extern "C". C++ programs that include dpu.h themselves write the same. */
#ifndef PIDCOMM_DPU_API_H
#define PIDCOMM_DPU_API_H

/* What dpu.h includes; first, so that no C++ header is opened inside the braces below. */
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
