/* model.h: predicts the time of a collective on a machine from its plan.
 *
 * A machine is a set of constants (transfer rates, costs in time, and counts), one constant for
 * each row of the tables below. The files in machines/ hold the built-in machines and the source of
 * each constant. A prediction depends only on the plan and the constants of a machine, not on a
 * device. All predicted times come from the model and are never measured
 * (studies/docs/evaluation.md). */
#ifndef PIDCOMM_MODEL_H
#define PIDCOMM_MODEL_H

#include <pidcomm/pidcomm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(section, key, unit, meaning) */
#define PIDCOMM_MACHINE_CONSTANTS(X)                                                               \
  X(host, threads, "threads",                                                                      \
    "default host threads of a call; more threads do not make a call faster")                      \
  X(host, emulated, "1 or 0",                                                                      \
    "1: MRAM is ordinary host memory, with its rates, coherent, without a mux")                    \
  X(host, overlap, "1 or more",                                                                    \
    "overlap of memory and instructions: 1 is none, large values are complete")                    \
  X(ranks, channels, "channels", "memory channels that have DIMMs with PEs")                       \
  X(ranks, per_channel, "ranks", "ranks of 64 PEs per channel")                                    \
  X(ranks, alternating, "channels",                                                                \
    "channels that consecutive DIMMs (two ranks each) fill together")                              \
  X(bus, read_gb_s, "GB/s per channel", "reading lines of MRAM")                                   \
  X(bus, write_gb_s, "GB/s per channel", "writing lines of MRAM")                                  \
  X(memory, read_gb_s, "GB/s", "reading host memory")                                              \
  X(memory, write_gb_s, "GB/s", "writing host memory")                                             \
  X(memory, thread_gb_s, "GB/s", "limit of one thread for lines of MRAM and host memory together") \
  X(call, us, "us", "fixed cost of a call")                                                        \
  X(call, rank_us, "us per rank", "acquiring and releasing a rank's MRAM")                         \
  X(call, mux_us, "us per rank", "switching a rank's MRAM from its PEs to the host")               \
  X(call, start_us, "us per thread",                                                               \
    "starting a part of a call on one more thread, and waiting for the thread")                    \
  X(call, part_us, "us", "fixed cost of a part of a call: one sweep over memory, or one phase")    \
  X(call, flush_ns, "ns per line", "flushing a line from the caches before the load")              \
  X(call, stream_ns, "ns",                                                                         \
    "computing the address of one stream of an item, for each chunk of words")                     \
  X(sdk, to_call_us, "us", "fixed cost of a parallel transfer of the SDK to PEs")                  \
  X(sdk, from_call_us, "us", "fixed cost of a parallel transfer of the SDK from PEs")              \
  X(sdk, pe_us, "us per PE", "preparing a transfer for one PE")                                    \
  X(sdk, from_gb_s, "GB/s per channel", "transfers from PEs")                                      \
  X(sdk, to_gb_s, "GB/s per channel", "transfers to PEs")                                          \
  X(sdk, thread_from_gb_s, "GB/s", "limit of one thread for transfers from PEs")                   \
  X(sdk, thread_to_gb_s, "GB/s", "limit of one thread for transfers to PEs")                       \
  X(sdk, least_pes, "PEs", "a transfer for fewer PEs moves as much as one for this number")        \
  X(sdk, start_kib, "KiB per PE",                                                                  \
    "first part of a transfer from PEs, which thread_start_gb_s limits")                           \
  X(sdk, thread_start_gb_s, "GB/s", "limit of one thread for first parts from PEs")                \
  X(sdk, host_gb_s, "GB/s",                                                                        \
    "reading host memory for transfers to PEs; PEs that receive the same bytes share one read")    \
  X(sdk, broadcast_share, "factor",                                                                \
    "time of a broadcast to all PEs over the time of a transfer of as many bytes to PEs")          \
  X(sdk, flush_ns, "ns per line",                                                                  \
    "flushing a line in a transfer from PEs, with the policy `hardware`")                          \
  X(sdk, serial_kib, "KiB", "a transfer of fewer bytes (for all PEs together) uses one thread")    \
  X(work, piece_ns, "ns", "rows of the SDK: copying or combining one piece in host memory")        \
  X(work, copy_gb_s, "GB/s",                                                                       \
    "rows of the SDK: limit of one thread that rearranges data in host memory")                    \
  X(work, combine_gb_s, "GB/s",                                                                    \
    "rows of the SDK: limit of one thread that combines input in host memory")                     \
  X(work, slow_combine_gb_s, "GB/s",                                                               \
    "rows of the SDK: the limit if the vector unit lacks the operator")                            \
  X(work, scalar_combine_gb_s, "GB/s",                                                             \
    "rows of the SDK: the limit with the instruction set `scalar` (baseline)")                     \
  X(pe, clock_mhz, "MHz", "clock of the PEs")                                                      \
  X(pe, dma_cycles, "cycles",                                                                      \
    "one transfer between MRAM and WRAM while other transfers are in flight")                      \
  X(pe, dma_cycles_per_byte, "cycles per byte", "transferring one byte between MRAM and WRAM")     \
  X(pe, word_instructions, "instructions per word", "permuting an 8-byte word in WRAM")            \
  X(pe, block_instructions, "instructions per block",                                              \
    "finding the position of a block, or of a part of a large block")                              \
  X(pe, run_cycles, "cycles", "fixed cost of a run of the reorder program")                        \
  X(pe, jobs_us, "us", "fixed cost of sending jobs to all PEs and reading them back")              \
  X(pe, job_us, "us per PE", "the same, for each PE")                                              \
  X(pe, launch_us, "us", "starting the PEs of a set and detecting their end")                      \
  X(pe, launch_rank_us, "us per rank", "the same, for each rank of the set")                       \
  X(pe, load_us, "us", "loading an empty program into the PEs of a set")                           \
  X(pe, load_rank_us, "us per rank", "the same, for each rank of the set")                         \
  X(pe, load_word_us, "us per word", "the same, for each instruction and each word in WRAM")       \
  X(pe, load_rank_word_us, "us per rank and word", "the same, for both")                           \
  X(pe, load_words, "words", "instructions, and words of 4 bytes in WRAM, of a loaded program")    \
  X(network, gb_s, "GB/s", "between hosts: sending rate of a host that receives at the same rate") \
  X(network, latency_us, "us", "between hosts: time of an empty message")                          \
  X(pool, gb_s, "GB/s", "memory pool: port of a host, in each direction")                          \
  X(pool, latency_us, "us", "memory pool: a load or a store of one line")                          \
  X(pool, devices, "devices", "memory pool: devices over which the rows spread")                   \
  X(pool, device_gb_s, "GB/s", "memory pool: a device, for all hosts together")                    \
  X(switch, gb_s, "GB/s", "switch of a memory pool: rows that it reduces")                         \
  X(error, pass_low, "factor",                                                                     \
    "95% of passes over lines took at least this share of modelled time")                          \
  X(error, pass_high, "factor", "and at most this multiple")                                       \
  X(error, sdk_low, "factor", "the same for transfers of the SDK")                                 \
  X(error, sdk_high, "factor", "the same for transfers of the SDK")                                \
  X(error, work_low, "factor", "the same for the work of the host between these transfers")        \
  X(error, work_high, "factor", "the same for the work of the host between these transfers")       \
  X(error, kernel_low, "factor", "the same for programs that run on PEs")                          \
  X(error, kernel_high, "factor", "the same for programs that run on PEs")                         \
  X(error, launch_low, "factor", "the same for sending jobs and launches")                         \
  X(error, launch_high, "factor", "the same for sending jobs and launches")                        \
  X(error, load_low, "factor", "the same for loads")                                               \
  X(error, load_high, "factor", "the same for loads")

/* X(key, meaning): costs on one core in ns, per line of 64 bytes. A machine has a set of these
 * costs for each instruction set. */
#define PIDCOMM_LINE_COSTS(X)                                                         \
  X(load, "loading a line of MRAM")                                                   \
  X(store, "storing a line of MRAM")                                                  \
  X(row_load, "loading 64 bytes of host rows")                                        \
  X(row_store, "storing 64 bytes of host rows")                                       \
  X(transpose, "a domain transfer: PIM order to host order or back")                  \
  X(shuffle, "one step that moves lanes")                                             \
  X(combine, "applying an operator of the vector unit to two lines")                  \
  X(slow_combine, "applying an operator that needs several instructions")             \
  X(buffer, "a line that passes through the buffer of a section")                     \
  X(unpaired, "a line of a bank if the call does not use the other bank of the pair") \
  X(keep, "a line in which some lanes keep their bytes")

/* X(name, meaning): the phases of a prediction. The phase times add up to the total time of the
 * prediction. If memory accesses and instructions overlap, the time counts only for the memory
 * phase. */
#define PIDCOMM_MODEL_PHASES(X)                                              \
  X(call, "the call itself: checks, acquiring ranks, starting threads")      \
  X(mux, "switching MRAM to the host")                                       \
  X(flush, "flushing lines")                                                 \
  X(bus, "lines of MRAM on the memory bus")                                  \
  X(memory, "host memory: host rows and staged bytes")                       \
  X(transpose, "domain transfers that memory does not hide")                 \
  X(shuffle, "movement of lanes and of host data that memory does not hide") \
  X(combine, "operators that memory does not hide")                          \
  X(lines, "loads, stores and addresses that memory does not hide")          \
  X(pe, "PEs that reorder blocks")                                           \
  X(launch, "starting the PEs")                                              \
  X(load, "loading the reorder program, then the caller's program")

#define PIDCOMM_ROW(key, ...) double key##_ns;
typedef struct pidcomm_line_costs {
  PIDCOMM_LINE_COSTS(PIDCOMM_ROW)
} pidcomm_line_costs;
#undef PIDCOMM_ROW

#define PIDCOMM_ROW(...) +1
/* The number of rows of PIDCOMM_ISAS plus 1: codes of instruction sets start at 1, so an array that
 * they index does not use entry 0. */
enum { PIDCOMM_MODEL_ISAS = 1 PIDCOMM_ISAS(PIDCOMM_ROW) };
#undef PIDCOMM_ROW

#define PIDCOMM_ROW(section, key, ...) double section##_##key;
/* The constants of a machine. All fields after `size` are doubles. The index of array `isa` is the
 * code of an instruction set; if the machine lacks the instruction set, its costs are 0. Later
 * versions cannot append fields to this struct: calls return ERR_ARGUMENT unless `size` equals
 * sizeof(pidcomm_machine) in the library. */
typedef struct pidcomm_machine {
  PIDCOMM_SIZE(struct pidcomm_machine);
  PIDCOMM_MACHINE_CONSTANTS(PIDCOMM_ROW)
  pidcomm_line_costs isa[PIDCOMM_MODEL_ISAS];
} pidcomm_machine;
#define PIDCOMM_MACHINE_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_machine)
#undef PIDCOMM_ROW

#define PIDCOMM_ROW(name, ...) double name;
/* A prediction, in seconds. The fields technique, isa, threads and coherence are the options that
 * the predicted call would use. The phase times add up to seconds_total. 95% of measured times lie
 * from seconds_low to seconds_high if the errors of the phases are those of the machine's constants
 * error.* and have the same sign. Later versions cannot append fields to this struct, as for
 * pidcomm_machine. */
typedef struct pidcomm_prediction {
  PIDCOMM_SIZE(struct pidcomm_prediction);
  int technique, isa, threads, coherence;
  double seconds_total, seconds_low, seconds_high;
  struct {
    PIDCOMM_MODEL_PHASES(PIDCOMM_ROW)
  } seconds;
} pidcomm_prediction;
#define PIDCOMM_PREDICTION_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_prediction)
#undef PIDCOMM_ROW

/* Stores the constants and the name of built-in machine `index`; the first machine has index 0.
 * Errors: ERR_ARGUMENT (a null pointer, a wrong size, or no built-in machine with this index). */
PIDCOMM_API int pidcomm_machine_builtin(size_t index, const char **name, pidcomm_machine *machine);

/* Predicts the time of the request on PEs arranged as axis_len. If `machine` is NULL, the call uses
 * the machine that pidcomm_use_machine has set. The default options are AUTO, the best instruction
 * set of the machine, all threads of the machine, and the coherence policy `hardware` (for emulated
 * machines: `none`). The host that runs pidcomm_predict does not have to support the instruction
 * set. For AUTO, the call predicts the technique with the lowest time; a collective may run another
 * one after it has timed both (pidcomm.h). Errors: those of pidcomm_run for the request (but a
 * missing host buffer is no error), ERR_SHAPE, ERR_ARGUMENT, ERR_OPTION (the machine lacks the
 * instruction set). */
PIDCOMM_API int pidcomm_predict(uint32_t axes, const uint32_t *axis_len,
                                const pidcomm_request *request, const pidcomm_options *options,
                                const pidcomm_machine *machine, pidcomm_prediction *prediction);

/* Makes PIDCOMM_TECHNIQUE_AUTO choose by the times predicted for `machine`, and by no measured
 * times, from now on, in the whole process. NULL restores the default machine: the built-in machine
 * `emulated-host` on emulated DIMMs, and `upmem-2560` on real DIMMs. Any thread may call
 * pidcomm_use_machine at any time. Errors: ERR_ARGUMENT (a constant is negative, or is 0 and the
 * model divides by it). */
PIDCOMM_API int pidcomm_use_machine(const pidcomm_machine *machine);

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_MODEL_H */
