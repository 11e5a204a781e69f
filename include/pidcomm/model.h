/* model.h: what a collective would take on a machine, predicted from its plan.
 *
 * A machine is a set of numbers: rates, costs and counts, one row of the tables below each. Built-in machines come from machines/
 * of the sources, where every number has its source. A prediction is a function of the plan and of these numbers, and of nothing else: it
 * needs no device. All times are modelled, never measured. docs/evaluation.md explains it. */
#ifndef PIDCOMM_MODEL_H
#define PIDCOMM_MODEL_H

#include <pidcomm/pidcomm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(section, key, unit, meaning) */
#define PIDCOMM_MACHINE_CONSTANTS(X)                                                                                  \
  X(host, threads, "threads", "host threads of a call that does not say, and the most that make it faster")           \
  X(host, emulated, "1 or 0", "MRAM is ordinary memory of the host: shares its rates, is coherent, and has no mux")   \
  X(host, overlap, "1 or more", "how memory and instructions overlap: 1 not at all, large completely")                \
  X(ranks, channels, "channels", "memory channels with DIMMs that have PEs")                                          \
  X(ranks, per_channel, "ranks", "ranks of 64 PEs on one of them")                                                    \
  X(bus, read_gb_s, "GB/s per channel", "reading lines of MRAM")                                                      \
  X(bus, write_gb_s, "GB/s per channel", "writing lines of MRAM")                                                     \
  X(memory, read_gb_s, "GB/s", "reading host memory")                                                                 \
  X(memory, write_gb_s, "GB/s", "writing host memory")                                                                \
  X(memory, thread_gb_s, "GB/s", "the most that one thread reads and writes, lines of MRAM and host memory together") \
  X(call, us, "us", "a call, whatever it does")                                                                       \
  X(call, rank_us, "us per rank", "taking and giving back a rank's MRAM")                                             \
  X(call, mux_us, "us per rank", "switching a rank's MRAM from its PEs to the host")                                  \
  X(call, start_us, "us per thread", "starting a part of a call on a further thread, and waiting for its end")        \
  X(call, part_us, "us", "a part of a call: one sweep over memory, or one phase")                                     \
  X(call, flush_ns, "ns per line", "flushing a line from the caches before it is loaded")                             \
  X(call, stream_ns, "ns", "finding one stream of an item in memory, for one chunk of its words")                     \
  X(call, row_ns, "ns", "general path: combining one row of a chunk of words")                                        \
  X(sdk, call_us, "us", "a parallel transfer of the SDK")                                                             \
  X(sdk, pe_us, "us per PE", "preparing it")                                                                          \
  X(sdk, from_gb_s, "GB/s per channel", "transfers from PEs")                                                         \
  X(sdk, to_gb_s, "GB/s per channel", "transfers to PEs")                                                             \
  X(sdk, thread_from_gb_s, "GB/s", "the most that one thread transfers from PEs")                                     \
  X(sdk, thread_to_gb_s, "GB/s", "the most that one thread transfers to PEs")                                         \
  X(sdk, flush_ns, "ns per line", "flushing a line in a transfer from PEs, if the policy says so")                    \
  X(sdk, serial_kib, "KiB", "transfers of fewer bytes, of all PEs, use one thread")                                   \
  X(work, piece_ns, "ns", "conventional: one piece that is copied or combined in host memory")                        \
  X(work, copy_gb_s, "GB/s", "conventional: the most that one thread rearranges in host memory")                      \
  X(work, combine_gb_s, "GB/s", "conventional: the most input that one thread combines in host memory")               \
  X(work, slow_combine_gb_s, "GB/s", "the same for operators that the vector unit lacks")                             \
  X(pe, clock_mhz, "MHz", "clock of the PEs")                                                                         \
  X(pe, dma_cycles, "cycles", "one transfer between MRAM and WRAM, with others on their way")                         \
  X(pe, dma_cycles_per_byte, "cycles per byte", "the same, for its bytes")                                            \
  X(pe, word_instructions, "instructions per word", "permuting an 8-byte word in WRAM")                               \
  X(pe, run_cycles, "cycles", "a run of the reorder program, whatever it does")                                       \
  X(pe, jobs_us, "us", "telling all PEs what to reorder")                                                             \
  X(pe, job_us, "us per PE", "the same, for each of them")                                                            \
  X(pe, launch_us, "us", "starting all PEs of a set and noticing their end")                                          \
  X(pe, load_us, "us", "loading a program into all PEs of a set")                                                     \
  X(network, gb_s, "GB/s", "between hosts: what one host sends while it receives as much")                            \
  X(network, latency_us, "us", "between hosts: a message of no bytes")

/* X(key, meaning): costs of a line (64 bytes) on one core, in ns, one set for each instruction set. */
#define PIDCOMM_LINE_COSTS(X)                                                 \
  X(load, "loading a line of MRAM")                                           \
  X(store, "storing a line of MRAM")                                          \
  X(row_load, "loading 64 bytes of host rows")                                \
  X(row_store, "storing 64 bytes of host rows")                               \
  X(transpose, "a domain transfer: PIM order to host order or back")          \
  X(shuffle, "one step that moves lanes")                                     \
  X(combine, "an operator of the vector unit, of two lines")                  \
  X(slow_combine, "an operator that takes several instructions")              \
  X(general, "general path: a line to rows or back")                          \
  X(unpaired, "a line of a bank whose bank pair the call does not use whole") \
  X(keep, "a line of which some lanes are to stay as they are")

/* X(name, meaning): parts of a prediction, which add up to its total. What overlaps is counted once, for memory first. */
#define PIDCOMM_MODEL_PHASES(X)                                         \
  X(call, "the call itself: checks, ranks, threads")                    \
  X(mux, "switching MRAM to the host")                                  \
  X(flush, "flushing lines")                                            \
  X(bus, "lines of MRAM on the memory bus")                             \
  X(memory, "host memory: rows, bytes staged")                          \
  X(transpose, "domain transfers, as far as memory does not hide them") \
  X(shuffle, "moving lanes and data in the host, likewise")             \
  X(combine, "operators, likewise")                                     \
  X(lines, "the loads, stores and addresses, likewise")                 \
  X(pe, "PEs that reorder blocks")                                      \
  X(launch, "starting them")                                            \
  X(load, "loading their program, and the caller's again")

#define PIDCOMM_ROW(key, ...) double key##_ns;
typedef struct pidcomm_line_costs {
  PIDCOMM_LINE_COSTS(PIDCOMM_ROW)
} pidcomm_line_costs;
#undef PIDCOMM_ROW

#define PIDCOMM_ROW(...) +1
/* Rows of PIDCOMM_ISAS, and one that is unused: codes start at 1. */
enum { PIDCOMM_MODEL_ISAS = 1 PIDCOMM_ISAS(PIDCOMM_ROW) };
#undef PIDCOMM_ROW

#define PIDCOMM_ROW(section, key, ...) double section##_##key;
/* After the size only doubles. isa: by code; an instruction set that the machine lacks has only zeros. This struct
 * cannot grow: any size but its sizeof in the library is ERR_ARGUMENT. */
typedef struct pidcomm_machine {
  PIDCOMM_SIZE(struct pidcomm_machine);
  PIDCOMM_MACHINE_CONSTANTS(PIDCOMM_ROW)
  pidcomm_line_costs isa[PIDCOMM_MODEL_ISAS];
} pidcomm_machine;
#define PIDCOMM_MACHINE_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_machine)
#undef PIDCOMM_ROW

#define PIDCOMM_ROW(name, ...) double name;
/* Seconds. technique, isa, threads and coherence are what a call would use; sum of the phases = seconds_total. As pidcomm_machine it cannot
 * grow. */
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

/* What the request would take on PEs arranged as axis_len. machine NULL: the one in use (pidcomm_use_machine). Options default to the
 * machine's: its best instruction set, all its threads, policy hardware unless emulated. The instruction set need not be one that runs
 * here. technique PIDCOMM_TECHNIQUE_AUTO: the fastest that needs neither scratch nor a program of PEs, or of all if scratch_offset is
 * given. Errors: those of the request (host buffers are not needed), ERR_SHAPE, ERR_ARGUMENT, ERR_OPTION (an instruction set that the
 * machine lacks). */
PIDCOMM_API int pidcomm_predict(uint32_t axes, const uint32_t *axis_len, const pidcomm_request *request, const pidcomm_options *options,
                                const pidcomm_machine *machine, pidcomm_prediction *prediction);

/* From now on PIDCOMM_TECHNIQUE_AUTO chooses as this machine would have it, in this process; NULL: as at the start, the built-in machine
 * emulated-host on emulated DIMMs, isca24 on DIMMs. May be called at any time, from any thread. Errors: ERR_ARGUMENT (a number that is
 * negative, or 0 where the model divides by it). */
PIDCOMM_API int pidcomm_use_machine(const pidcomm_machine *machine);

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_MODEL_H */
