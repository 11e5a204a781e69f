// Includes the public headers of the UPMEM SDK that the library uses, with C linkage.
#pragma once

#include "pidcomm/dpu_api.h"

extern "C" {
#include <dpu_management.h>
#include <dpu_memory.h>
#include <dpu_program.h>
#include <dpu_transfer_matrix.h>
}
