#include <errno.h>

int __errno[DPU_NR_THREADS];
