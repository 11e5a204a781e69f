/// dpu_characteristics.h: the numbers of tasklets, atomic bits and registers of a DPU.
#ifndef PE_DPU_CHARACTERISTICS_H
#define PE_DPU_CHARACTERISTICS_H

#define DPU_NR_THREADS 24
#define DPU_NR_ATOMIC_BITS 256
#define DPU_NR_WORK_REGS 24

#endif  // PE_DPU_CHARACTERISTICS_H
