/// dpu_chip_id.h: the SDK's header of dpu_chip_id_e.
#include <dpu_hw_description.h>
