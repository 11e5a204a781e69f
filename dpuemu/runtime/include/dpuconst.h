/// dpuconst.h: constants of the DPU, for the runtime.
#ifndef PE_DPUCONST_H
#define PE_DPUCONST_H

#define __DPU_NUMBER_OF_THREADS 24
#define __DPU_MRAM_SIZE_LOG2 26

#endif  // PE_DPUCONST_H
