/// dpu_hw_description.h: the limits and the clock of the DPUs of a rank. The chip of the machine
/// (dpuemu.h) decides the values.
#ifndef DPU_HW_DESCRIPTION_H
#define DPU_HW_DESCRIPTION_H

#include <dpu_types.h>
#include <stdint.h>

/// The numbers of the chips, with the names of the UPMEM SDK. The column id of PE_CHIP_TABLE
/// (pe/calls.h) holds these numbers.
typedef enum dpu_chip_id_e {
  vD_asic8 = 4,        ///< generic and v1A
  vD_asic8_v1_4 = 68,  ///< v1B
} dpu_chip_id_e;

struct dpu_hw_description_t {
  struct {
    dpu_chip_id_e chip_id;
  } signature;
  struct {
    uint32_t
        fck_frequency_in_mhz;  ///< the clock of the DPUs is fck_frequency_in_mhz / clock_division
    uint8_t clock_division;    ///< 1
  } timings;
  struct {
    uint8_t nr_of_control_interfaces;          ///< chips of a rank
    uint8_t nr_of_dpus_per_control_interface;  ///< banks of a chip
    uint8_t ci_mask;                           ///< a bit for each chip
  } topology;
  struct {
    mram_size_t mram_size;  ///< bytes
    wram_size_t wram_size;  ///< words of 4 bytes
    iram_size_t iram_size;  ///< instructions
  } memories;
  struct {
    uint8_t nr_of_threads;       ///< tasklets
    uint32_t nr_of_atomic_bits;  ///< mutexes
    uint8_t nr_of_work_registers_per_thread;
  } dpu;
};

#endif  // DPU_HW_DESCRIPTION_H
