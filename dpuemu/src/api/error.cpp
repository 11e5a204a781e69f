// Implements dpu_error.h: a sentence for each status code.
#include <dpu_error.h>

#include <cstring>
#include <new>
#include <string>

#include "base/explanation.h"
#include "machine/machine_settings.h"

namespace {

struct Sentence {
  dpu_error_t status;
  const char *text;
};

constexpr Sentence kSentences[] = {
    {DPU_OK, "success"},
    {DPU_ERR_INTERNAL, "internal error: a NULL argument or a call that is not possible here"},
    {DPU_ERR_SYSTEM, "the operating system has no more memory or threads"},
    {DPU_ERR_DRIVER, "error in the driver of the rank"},
    {DPU_ERR_ALLOCATION, "not enough free DPUs"},
    {DPU_ERR_INVALID_DPU_SET, "invalid DPU set: freed, or of the wrong kind for this call"},
    {DPU_ERR_INVALID_THREAD_ID, "invalid thread number"},
    {DPU_ERR_INVALID_NOTIFY_ID, "invalid notify number"},
    {DPU_ERR_INVALID_WRAM_ACCESS, "invalid access to WRAM"},
    {DPU_ERR_INVALID_IRAM_ACCESS, "invalid access to IRAM"},
    {DPU_ERR_INVALID_MRAM_ACCESS,
     "invalid access to MRAM: beyond its end, or in strict mode unaligned"},
    {DPU_ERR_INVALID_SYMBOL_ACCESS, "invalid access to a symbol: beyond its end"},
    {DPU_ERR_MRAM_BUSY, "the MRAM is busy: the other side owns it"},
    {DPU_ERR_TRANSFER_ALREADY_SET, "the transfer of the DPU is already prepared"},
    {DPU_ERR_INVALID_PARALLEL_MEMORY_TRANSFER, "a parallel transfer can only reach WRAM"},
    {DPU_ERR_WRAM_FIFO_FULL, "the FIFO in WRAM is full"},
    {DPU_ERR_NO_PROGRAM_LOADED, "no program is loaded"},
    {DPU_ERR_DIFFERENT_DPU_PROGRAMS, "the DPUs have different programs"},
    {DPU_ERR_CORRUPTED_MEMORY, "the memory is corrupted"},
    {DPU_ERR_DPU_DISABLED, "the DPU is disabled"},
    {DPU_ERR_DPU_ALREADY_RUNNING, "the DPU is already running"},
    {DPU_ERR_INVALID_MEMORY_TRANSFER, "invalid direction of a transfer"},
    {DPU_ERR_INVALID_LAUNCH_POLICY, "invalid launch policy"},
    {DPU_ERR_DPU_FAULT, "a DPU is in fault"},
    {DPU_ERR_ELF_INVALID_FILE, "not a program that this machine can run"},
    {DPU_ERR_ELF_NO_SUCH_FILE, "no such program file"},
    {DPU_ERR_ELF_NO_SUCH_SECTION, "no such section in the program file"},
    {DPU_ERR_TIMEOUT, "timeout"},
    {DPU_ERR_INVALID_PROFILE, "invalid profile or machine description"},
    {DPU_ERR_UNKNOWN_SYMBOL, "unknown symbol"},
    {DPU_ERR_LOG_FORMAT, "the log has an unknown format"},
    {DPU_ERR_LOG_CONTEXT_MISSING, "no program that prints is loaded"},
    {DPU_ERR_LOG_BUFFER_TOO_SMALL, "the log buffer was too small"},
    {DPU_ERR_VPD_INVALID_FILE, "invalid file of vital product data"},
    {DPU_ERR_VPD_NO_REPAIR, "no repair data"},
    {DPU_ERR_NO_THREAD_PER_RANK, "no thread for the rank"},
    {DPU_ERR_INVALID_BUFFER_SIZE, "invalid size of a buffer"},
    {DPU_ERR_NONBLOCKING_SYNC_CALLBACK, "a nonblocking callback must be asynchronous"},
    {DPU_ERR_TOO_MANY_TASKLETS, "the program has too many tasklets"},
    {DPU_ERR_SG_TOO_MANY_BLOCKS, "too many blocks in a scatter-gather transfer"},
    {DPU_ERR_SG_LENGTH_MISMATCH,
     "the blocks of a scatter-gather transfer do not add up to its length"},
    {DPU_ERR_SG_NOT_ACTIVATED, "scatter-gather transfers are not activated"},
    {DPU_ERR_SG_NOT_MRAM_SYMBOL, "scatter-gather transfers only reach MRAM"},
    {DPU_ERR_ASYNC_JOBS, "an asynchronous job failed"},
};

}  // namespace

char *dpu_error_to_string(dpu_error_t status) {
  try {
    const std::string problem =
        status == DPU_ERR_INVALID_PROFILE ? dpuemu::environment_problem() : "";
    if (!problem.empty()) return strdup(("invalid machine description: " + problem).c_str());
    const std::string details = dpuemu::explanation_of(status);
    for (const Sentence &sentence : kSentences)
      if (sentence.status == status)
        return strdup((sentence.text + (details.empty() ? "" : ": " + details)).c_str());
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
  return strdup("unknown error");
}
