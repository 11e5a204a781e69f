// Includes the public headers of the UPMEM SDK that the artifact's calls use, with C linkage.
#pragma once

#include <pidcomm/dpu_api.h>

extern "C" {
#include <dpu_management.h>
#include <dpu_program.h>
}
