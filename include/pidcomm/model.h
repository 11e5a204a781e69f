/* model.h: predicts the time of a collective on a machine from its plan.
 *
 * A machine is a set of rates, costs and counts, one for each row of the tables below. The built-in machines and the source of each of
 * their numbers are in machines/. A prediction depends only on the plan and these numbers; it needs no device. All times are modelled,
 * never measured (docs/evaluation.md). */
#ifndef PIDCOMM_MODEL_H
#define PIDCOMM_MODEL_H

#include <pidcomm/pidcomm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(section, key, unit, meaning) */
#define PIDCOMM_MACHINE_CONSTANTS(X)                                                                            \
  X(host, threads, "threads", "default host threads of a call; more do not make it faster")                     \
  X(host, emulated, "1 or 0", "MRAM is ordinary host memory: it shares its rates, is coherent, and has no mux") \
  X(host, overlap, "1 or more", "overlap of memory and instructions: 1 none, large values complete")            \
  X(ranks, channels, "channels", "memory channels with DIMMs that have PEs")                                    \
  X(ranks, per_channel, "ranks", "ranks of 64 PEs per channel")                                                 \
  X(bus, read_gb_s, "GB/s per channel", "reading lines of MRAM")                                                \
  X(bus, write_gb_s, "GB/s per channel", "writing lines of MRAM")                                               \
  X(memory, read_gb_s, "GB/s", "reading host memory")                                                           \
  X(memory, write_gb_s, "GB/s", "writing host memory")                                                          \
  X(memory, thread_gb_s, "GB/s", "limit of one thread, lines of MRAM and host memory together")                 \
  X(call, us, "us", "fixed cost of a call")                                                                     \
  X(call, rank_us, "us per rank", "acquiring and releasing a rank's MRAM")                                      \
  X(call, mux_us, "us per rank", "switching a rank's MRAM from its PEs to the host")                            \
  X(call, start_us, "us per thread", "starting a part of a call on one more thread, and waiting for its end")   \
  X(call, part_us, "us", "fixed cost of a part of a call: one sweep over memory, or one phase")                 \
  X(call, flush_ns, "ns per line", "flushing a line from the caches before it is loaded")                       \
  X(call, stream_ns, "ns", "computing the address of one stream of an item, per chunk of words")                \
  X(call, row_ns, "ns", "general path: combining one row of a chunk of words")                                  \
  X(sdk, call_us, "us", "a parallel transfer of the SDK")                                                       \
  X(sdk, pe_us, "us per PE", "preparing a transfer")                                                            \
  X(sdk, from_gb_s, "GB/s per channel", "transfers from PEs")                                                   \
  X(sdk, to_gb_s, "GB/s per channel", "transfers to PEs")                                                       \
  X(sdk, thread_from_gb_s, "GB/s", "limit of one thread, transfers from PEs")                                   \
  X(sdk, thread_to_gb_s, "GB/s", "limit of one thread, transfers to PEs")                                       \
  X(sdk, flush_ns, "ns per line", "flushing a line in a transfer from PEs, with policy hardware")               \
  X(sdk, serial_kib, "KiB", "transfers of fewer bytes (all PEs together) use one thread")                       \
  X(work, piece_ns, "ns", "conventional: copying or combining one piece in host memory")                        \
  X(work, copy_gb_s, "GB/s", "conventional: limit of one thread, rearranging in host memory")                   \
  X(work, combine_gb_s, "GB/s", "conventional: limit of one thread, input combined in host memory")             \
  X(work, slow_combine_gb_s, "GB/s", "the same for operators that the vector unit lacks")                       \
  X(pe, clock_mhz, "MHz", "clock of the PEs")                                                                   \
  X(pe, dma_cycles, "cycles", "one transfer between MRAM and WRAM, while others are in flight")                 \
  X(pe, dma_cycles_per_byte, "cycles per byte", "the same, per byte")                                           \
  X(pe, word_instructions, "instructions per word", "permuting an 8-byte word in WRAM")                         \
  X(pe, run_cycles, "cycles", "fixed cost of a run of the reorder program")                                     \
  X(pe, jobs_us, "us", "fixed cost of sending jobs to all PEs")                                                 \
  X(pe, job_us, "us per PE", "sending a job to one PE")                                                         \
  X(pe, launch_us, "us", "starting all PEs of a set and detecting their end")                                   \
  X(pe, load_us, "us", "loading a program into all PEs of a set")                                               \
  X(network, gb_s, "GB/s", "between hosts: sending rate of a host that receives at the same rate")              \
  X(network, latency_us, "us", "between hosts: an empty message")

/* X(key, meaning): costs of a line (64 bytes) on one core, in ns, one set for each instruction set. */
#define PIDCOMM_LINE_COSTS(X)                                                \
  X(load, "loading a line of MRAM")                                          \
  X(store, "storing a line of MRAM")                                         \
  X(row_load, "loading 64 bytes of host rows")                               \
  X(row_store, "storing 64 bytes of host rows")                              \
  X(transpose, "a domain transfer: PIM order to host order or back")         \
  X(shuffle, "one step that moves lanes")                                    \
  X(combine, "an operator of the vector unit, of two lines")                 \
  X(slow_combine, "an operator that takes several instructions")             \
  X(general, "general path: a line to rows or back")                         \
  X(unpaired, "a line of a bank whose bank pair the call uses only in part") \
  X(keep, "a line in which some lanes keep their bytes")

/* X(name, meaning): parts of a prediction; they add up to its total. Overlapping time counts once, first for memory. */
#define PIDCOMM_MODEL_PHASES(X)                                             \
  X(call, "the call itself: checks, ranks, threads")                        \
  X(mux, "switching MRAM to the host")                                      \
  X(flush, "flushing lines")                                                \
  X(bus, "lines of MRAM on the memory bus")                                 \
  X(memory, "host memory: rows, bytes staged")                              \
  X(transpose, "domain transfers that memory does not hide")                \
  X(shuffle, "moving lanes and data in the host that memory does not hide") \
  X(combine, "operators that memory does not hide")                         \
  X(lines, "loads, stores and addresses that memory does not hide")         \
  X(pe, "PEs that reorder blocks")                                          \
  X(launch, "starting the PEs")                                             \
  X(load, "loading the reorder program, then the caller's program")

#define PIDCOMM_ROW(key, ...) double key##_ns;
typedef struct pidcomm_line_costs {
  PIDCOMM_LINE_COSTS(PIDCOMM_ROW)
} pidcomm_line_costs;
#undef PIDCOMM_ROW

/* Rows of PIDCOMM_ISAS and an unused one: codes start at 1. */
#define PIDCOMM_ROW(...) +1
enum { PIDCOMM_MODEL_ISAS = 1 PIDCOMM_ISAS(PIDCOMM_ROW) };
#undef PIDCOMM_ROW

/* After the size only doubles. isa: by code; an instruction set that the machine lacks has only zeros. This struct
 * cannot grow: any size but its sizeof in the library is ERR_ARGUMENT. */
#define PIDCOMM_ROW(section, key, ...) double section##_##key;
typedef struct pidcomm_machine {
  PIDCOMM_SIZE(struct pidcomm_machine);
  PIDCOMM_MACHINE_CONSTANTS(PIDCOMM_ROW)
  pidcomm_line_costs isa[PIDCOMM_MODEL_ISAS];
} pidcomm_machine;
#define PIDCOMM_MACHINE_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_machine)
#undef PIDCOMM_ROW

#define PIDCOMM_ROW(name, ...) double name;
/* Seconds. technique, isa, threads and coherence: those of the call. The sum of the phases is seconds_total. Like pidcomm_machine, this
 * struct cannot grow. */
typedef struct pidcomm_prediction {
  PIDCOMM_SIZE(struct pidcomm_prediction);
  int technique, isa, threads, coherence;
  double seconds_total;
  struct {
    PIDCOMM_MODEL_PHASES(PIDCOMM_ROW)
  } seconds;
} pidcomm_prediction;
#define PIDCOMM_PREDICTION_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_prediction)
#undef PIDCOMM_ROW

/* Stores the built-in machine number `index` and its name, from 0 on.
 * Errors: ERR_ARGUMENT (null, another size, or no such machine). */
PIDCOMM_API int pidcomm_machine_builtin(size_t index, const char **name, pidcomm_machine *machine);

/* Predicts the time of the request on PEs arranged as axis_len. machine NULL: the one in use (pidcomm_use_machine). Options default to the
 * machine's: its best instruction set, all its threads, policy hardware unless emulated. The host need not support the instruction set.
 * technique PIDCOMM_TECHNIQUE_AUTO: the fastest that needs neither PE scratch nor a PE program; the fastest of all if scratch_offset is
 * given. Errors: those of the request (host buffers are not needed), ERR_SHAPE, ERR_ARGUMENT, ERR_OPTION (the machine lacks the instruction
 * set). */
PIDCOMM_API int pidcomm_predict(uint32_t axes, const uint32_t *axis_len, const pidcomm_request *request, const pidcomm_options *options,
                                const pidcomm_machine *machine, pidcomm_prediction *prediction);

/* From now on PIDCOMM_TECHNIQUE_AUTO predicts times for this machine, in this process. NULL restores the default: the built-in machine
 * emulated-host on emulated DIMMs, isca24 on DIMMs. May be called at any time, from any thread. Errors: ERR_ARGUMENT (a number that is
 * negative, or 0 where the model divides by it). */
PIDCOMM_API int pidcomm_use_machine(const pidcomm_machine *machine);

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_MODEL_H */
