/* support.h: everything in the published artifact's <pidcomm.h> except its calls: headers of the C
 * library, an element type chosen on the compiler's command line, the arguments of the artifact's
 * PE programs, and timers. */
#ifndef PIDCOMM_ARTIFACT_SUPPORT_H
#define PIDCOMM_ARTIFACT_SUPPORT_H

#include <assert.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

/* Options such as -DINT32 choose the element type T. byte_dt is its size, and DIV is the base-2
 * logarithm of byte_dt. */
#if defined(UINT32)
#define T uint32_t
#define byte_dt 4
#define DIV 2
#elif defined(INT32)
#define T int32_t
#define byte_dt 4
#define DIV 2
#elif defined(INT16)
#define T int16_t
#define byte_dt 2
#define DIV 1
#elif defined(INT8)
#define T int8_t
#define byte_dt 1
#define DIV 0
#elif defined(INT64)
#define T int64_t
#define byte_dt 8
#define DIV 3
#endif

/* The layout, on the PE, of the variable DPU_INPUT_ARGUMENTS_RS1 in programs with a relocation
 * kernel. */
typedef struct {
  uint32_t start_offset, target_offset, total_data_size;
  uint32_t num_comm_dpu, each_dpu;
  bool no_rotate;
  uint32_t num_row, comm_type, a_length, num_comm_rg;
} dpu_arguments_comm_t;

/* 12 stopwatches; time[] is in microseconds. */
enum { PIDCOMM_ARTIFACT_TIMERS = 12 };
typedef struct Timer {
  struct timeval startTime[PIDCOMM_ARTIFACT_TIMERS], stopTime[PIDCOMM_ARTIFACT_TIMERS];
  double time[PIDCOMM_ARTIFACT_TIMERS];
} Timer;

static inline void resetTimer(Timer *timer) { memset(timer->time, 0, sizeof timer->time); }

/* Sets stopwatch i to 0 and starts it. */
static inline void startTimer(Timer *timer, int i) {
  timer->time[i] = 0;
  gettimeofday(&timer->startTime[i], NULL);
}

static inline void stopTimer(Timer *timer, int i) {
  gettimeofday(&timer->stopTime[i], NULL);
  timer->time[i] += (double)(timer->stopTime[i].tv_sec - timer->startTime[i].tv_sec) * 1e6 +
                    (double)(timer->stopTime[i].tv_usec - timer->startTime[i].tv_usec);
}

static inline void printTimer(Timer *timer, int i) {
  printf("Time (ms): \t%f\n", timer->time[i] / 1e3);
}

#endif /* PIDCOMM_ARTIFACT_SUPPORT_H */
