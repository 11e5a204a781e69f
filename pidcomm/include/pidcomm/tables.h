/* tables.h: tables with one row for every collective, element type, operator, technique,
 * instruction set, coherence policy, copy order, trace field and status.
 *
 * C enumerators, C names, Python names, the command line, and the cases of benchmarks and tests are
 * generated from these tables. Codes are part of the ABI: add new rows at the end of a table, and
 * never change the code of a row. */
#ifndef PIDCOMM_TABLES_H
#define PIDCOMM_TABLES_H

#include <stdint.h>

/* Sizes of a rank without disabled PEs: its chips (which are the lanes of a line), the banks of a
 * chip (which are the entangled groups of the rank), and its PEs. */
#define PIDCOMM_CHIPS_PER_RANK 8
#define PIDCOMM_BANKS_PER_CHIP 8
#define PIDCOMM_PES_PER_RANK (PIDCOMM_CHIPS_PER_RANK * PIDCOMM_BANKS_PER_CHIP)

/* The size of a word and the size of a PE's MRAM, in bytes. Block sizes and offsets are multiples
 * of the word size. */
#define PIDCOMM_WORD_BYTES 8
#define PIDCOMM_MRAM_BYTES (64ull << 20)

/* The names of the axes of a hypercube, unless the program gives others. */
#define PIDCOMM_AXIS_NAMES                                                                      \
  "x", "y", "z", "w", "axis4", "axis5", "axis6", "axis7", "axis8", "axis9", "axis10", "axis11", \
      "axis12", "axis13", "axis14", "axis15"

/* The address of MRAM byte 0 in the symbols of PE programs. */
#define PIDCOMM_MRAM_ADDRESS 0x08000000u

/* A line is 64 bytes of a rank's memory: a word of each chip. The lines of a run, which is 8 KiB of
 * a PE's MRAM, have a constant distance in the memory of the rank. In bytes. */
#define PIDCOMM_LINE_BYTES (PIDCOMM_CHIPS_PER_RANK * PIDCOMM_WORD_BYTES)
#define PIDCOMM_RUN_BYTES 8192

/* The three steps of the PID-Comm paper (ISCA 2024, section V) as bits: PE-assisted reordering,
 * in-register modulation, cross-domain modulation. */
#define PIDCOMM_STEP_PR 1
#define PIDCOMM_STEP_IM 2
#define PIDCOMM_STEP_CM 4

/* X(ENUM, code, name, takes an operator, input is in MRAM (else in host rows), output is in MRAM
 * (else in host rows), input has N blocks (else one block), output has N blocks (else one block),
 * steps of the PID-Comm paper that apply, result). If the input or output in MRAM has N blocks,
 * argument `bytes` of a call is the size of N blocks, else the size of one block. The steps come
 * from table II of the PID-Comm paper; CM applies to a reduction only if its operator computes each
 * byte of the result from the same byte of the inputs. The three columns after the name decide
 * which parameters the C function has: see PIDCOMM_PARAMETERS_* in pidcomm.h. */
#define PIDCOMM_COLLECTIVES(X)                                                                  \
  X(ALLTOALL, 0, alltoall, 0, 1, 1, 1, 1, 7, "block q of member p becomes block p of member q") \
  X(REDUCE_SCATTER, 1, reduce_scatter, 1, 1, 1, 1, 0, 7,                                        \
    "member q has block q, reduced over all members")                                           \
  X(ALLREDUCE, 2, allreduce, 1, 1, 1, 0, 0, 7,                                                  \
    "every member has the element-wise reduction over all members")                             \
  X(ALLGATHER, 3, allgather, 0, 1, 1, 0, 1, 7,                                                  \
    "every member has the blocks of all members, in member order")                              \
  X(SCATTER, 4, scatter, 0, 0, 1, 1, 0, 2, "member q has part q of its group's host row")       \
  X(GATHER, 5, gather, 0, 1, 0, 0, 1, 2,                                                        \
    "the host row of a group has the blocks of its members, in member order")                   \
  X(REDUCE, 6, reduce, 1, 1, 0, 0, 0, 3,                                                        \
    "the host row of a group has the element-wise reduction over its members")                  \
  X(BROADCAST, 7, broadcast, 0, 0, 1, 0, 0, 0, "every member has the host row of its group")

/* X(ENUM, code, name): the scans of operators.h. */
#define PIDCOMM_SCANS(X) X(SCAN, 29, scan) X(EXSCAN, 30, exscan)

/* Floats of 16 bits as bits: binary16 of IEEE 754, and the upper half of a float. */
typedef struct pidcomm_float16 {
  uint16_t bits;
} pidcomm_float16;
typedef struct pidcomm_bfloat16 {
  uint16_t bits;
} pidcomm_bfloat16;

/* X(ENUM, code, name, C type, kind). Codes start at 16, so that sizeof of an element type is never
 * a valid code. Operators on floats of 16 bits compute with float32 and round each result to
 * nearest, ties to even. */
#define PIDCOMM_TYPES(X)                             \
  X(INT8, 16, int8, int8_t, signed_integer)          \
  X(UINT8, 17, uint8, uint8_t, unsigned_integer)     \
  X(INT16, 18, int16, int16_t, signed_integer)       \
  X(UINT16, 19, uint16, uint16_t, unsigned_integer)  \
  X(INT32, 20, int32, int32_t, signed_integer)       \
  X(UINT32, 21, uint32, uint32_t, unsigned_integer)  \
  X(INT64, 22, int64, int64_t, signed_integer)       \
  X(UINT64, 23, uint64, uint64_t, unsigned_integer)  \
  X(FLOAT32, 24, float32, float, floating)           \
  X(FLOAT64, 25, float64, double, floating)          \
  X(FLOAT16, 26, float16, pidcomm_float16, floating) \
  X(BFLOAT16, 27, bfloat16, pidcomm_bfloat16, floating)

/* X(ENUM, code, name, kind): `arith` operators wrap for integers and work for floats; `order`
 * operators differ between signed and unsigned types; `bits` operators work only for integers. `or`
 * and `and` are keywords of C++, so code that expands this table makes names from the ENUM. */
#define PIDCOMM_OPS(X)      \
  X(SUM, 0, "sum", arith)   \
  X(PROD, 1, "prod", arith) \
  X(MIN, 2, "min", order)   \
  X(MAX, 3, "max", order)   \
  X(AND, 4, "and", bits)    \
  X(OR, 5, "or", bits)      \
  X(XOR, 6, "xor", bits)

/* A set of collectives as bits: bit 1 << c stands for the collective with code c. This set contains
 * all collectives. */
#define PIDCOMM_ALL_COLLECTIVES 0xFFFFFFFFu

/* X(ENUM, code, name, path, steps of the PID-Comm paper, collectives, needs a shape with a lane
 * split, `auto` may choose the technique, reductions may have an operator of operators.h). The path
 * (make_PATH in src/plan) defines how the bytes travel. A technique omits the steps that do not
 * apply to a collective; if none of its steps applies, the call runs as `conventional`. If PEs of a
 * group share an entangled group, step PR runs a PE program, which replaces the loaded program;
 * most collectives then need PE scratch. If an option has code 0, the library chooses the value. */
#define PIDCOMM_TECHNIQUES(X)                                                  \
  X(TILE, 1, "tile", tile, 0, PIDCOMM_ALL_COLLECTIVES, 0, 1, 1)                \
  X(CONVENTIONAL, 2, "conventional", sdk, 0, PIDCOMM_ALL_COLLECTIVES, 0, 1, 1) \
  X(PR, 3, "pr", sdk, 1, PIDCOMM_ALL_COLLECTIVES, 1, 1, 1)                     \
  X(PR_IM, 4, "pr+im", paper, 3, PIDCOMM_ALL_COLLECTIVES, 1, 1, 1)             \
  X(PR_IM_CM, 5, "pr+im+cm", paper, 7, PIDCOMM_ALL_COLLECTIVES, 1, 1, 1)       \
  X(RING, 6, "ring", ring, 7, 1 << 2, 1, 0, 0)                                 \
  X(TREE, 7, "tree", tree, 0, 1 << 2, 1, 0, 0)                                 \
  X(BASELINE, 8, "baseline", baseline, 0, 0xFF, 0, 0, 0)

/* X(ENUM, code, name, level): the default instruction set is the one with the highest level that
 * the machine can run. An instruction set with level 0 is never the default. */
#define PIDCOMM_ISAS(X)         \
  X(SCALAR, 1, "scalar", 1)     \
  X(AUDIT, 2, "audit", 0)       \
  X(AVX2, 3, "avx2", 2)         \
  X(AVX512BW, 4, "avx512bw", 3) \
  X(AVX512VBMI, 5, "avx512vbmi", 4)

/* X(ENUM, code, name) */
#define PIDCOMM_COHERENCES(X) \
  X(NONE, 1, "none")          \
  X(HARDWARE, 2, "hardware")

/* X(ENUM, code, name, streams, strip, ahead, level): the orders in which the streaming limit visits
 * memory. Each thread moves runs of `streams` bank pairs side by side. The thread moves `strip`
 * words of a run before it continues with the next run. It prefetches lines `ahead` words before
 * their use, into the cache of level `level`. If `ahead` is 0, the thread does not prefetch. */
#define PIDCOMM_COPY_ORDERS(X)                      \
  X(PLAIN, 1, "plain", 1, 8, 0, 1)                  \
  X(SEQUENTIAL, 2, "sequential", 1, 8, 32, 1)       \
  X(SEQUENTIAL_L2, 3, "sequential_l2", 1, 8, 32, 2) \
  X(BANKS4, 4, "banks4", 4, 8, 8, 1)                \
  X(BANKS4_L2, 5, "banks4_l2", 4, 8, 16, 2)         \
  X(BANKS8, 6, "banks8", 8, 8, 8, 1)

/* X(ENUM, code, name): whether exchanges between hosts overlap with local passes, in pieces with
 * two buffers. `auto` chooses the number of pieces with the lowest predicted time
 * (pidcomm/model.h). */
#define PIDCOMM_OVERLAPS(X) \
  X(AUTO, 0, "auto")        \
  X(ON, 1, "on")            \
  X(OFF, 2, "off")

/* X(ENUM, code, name): how rows get from host to host. `mpi`: in messages (of MPI, or of another
 * transport that sends messages). `pool`: local passes write rows into a pool and read rows of
 * other hosts from it. `switch`: as `pool`, and the switch of the pool reduces. */
#define PIDCOMM_TRANSPORTS(X) \
  X(MPI, 0, "mpi")            \
  X(POOL, 1, "pool")          \
  X(SWITCH, 2, "switch")

/* X(C type, name, table of the codes or NUMBER, meaning): the fields of pidcomm_trace. Add new rows
 * at the end of the table. The C type of a new row must have 8 bytes. */
#define PIDCOMM_TRACE_FIELDS(X)                                                                \
  X(int, technique, TECHNIQUE, "the technique that ran")                                       \
  X(int, isa, ISA, "the instruction set that ran")                                             \
  X(int, threads, NUMBER,                                                                      \
    "number of host threads that the call may use; for a small call, the default is one")      \
  X(int, coherence, COHERENCE, "the coherence policy that the call used")                      \
  X(double, seconds_total, NUMBER, "the complete call, with waiting")                          \
  X(double, seconds_plan, NUMBER, "checks and planning")                                       \
  X(double, seconds_acquire, NUMBER, "waiting for the ranks and acquiring them")               \
  X(double, seconds_pass, NUMBER,                                                              \
    "the host pass; over the SDK: transfers from PEs, host work, transfers to PEs")            \
  X(double, seconds_from_pes, NUMBER, "over the SDK: transfers from the PEs")                  \
  X(double, seconds_host, NUMBER, "over the SDK: work in host memory")                         \
  X(double, seconds_to_pes, NUMBER, "over the SDK: transfers to the PEs")                      \
  X(double, seconds_load, NUMBER, "loading the PE program that reorders blocks")               \
  X(double, seconds_reorder, NUMBER, "sending a job to each PE, and running the PEs")          \
  X(double, seconds_launch, NUMBER,                                                            \
    "part of seconds_reorder: running (or emulating) the PEs and reading their cycles")        \
  X(uint64_t, pe_loads, NUMBER, "loads of the PE program that reorders blocks")                \
  X(uint64_t, pe_launches, NUMBER, "launches of the PE program that reorders blocks")          \
  X(uint64_t, pe_cycles, NUMBER,                                                               \
    "cycles of the slowest PE, summed over launches; modelled on emulated DIMMs")              \
  X(uint64_t, pe_bytes, NUMBER, "bytes that PEs read and wrote to reorder blocks")             \
  X(uint64_t, mram_bytes_read, NUMBER, "bytes of MRAM lines that the host loaded")             \
  X(uint64_t, mram_bytes_written, NUMBER, "bytes of MRAM lines that the host stored")          \
  X(uint64_t, host_bytes_read, NUMBER,                                                         \
    "bytes read from host rows and from the library's buffer (over the SDK)")                  \
  X(uint64_t, host_bytes_written, NUMBER,                                                      \
    "bytes written to host rows and to the library's buffer (over the SDK)")                   \
  X(uint64_t, bytes_staged, NUMBER, "bytes of all buffers that the call used in host memory")  \
  X(double, seconds_exchange, NUMBER,                                                          \
    "over hosts: exchanges between hosts, with the reduction of received rows")                \
  X(uint64_t, bytes_sent, NUMBER, "over hosts: bytes that this host sent, or wrote to a pool") \
  X(uint64_t, bytes_received, NUMBER,                                                          \
    "over hosts: bytes that this host received, or read from a pool")                          \
  X(double, pe_seconds, NUMBER,                                                                \
    "seconds of pe_cycles, at the clock that the SDK reports to PE programs (0 if it reports " \
    "none)")

/* X(ENUM, code, meaning). pidcomm_last_error() returns a sentence with the offending values of the
 * failed call. */
#define PIDCOMM_STATUSES(X)                                                                   \
  X(OK, 0, "success")                                                                         \
  X(ERR_SHAPE, 1, "the set's enabled PEs cannot form a hypercube of these axis lengths")      \
  X(ERR_MASK, 2, "the axis mask does not have one '0' or '1' per axis")                       \
  X(ERR_SIZE, 3, "a size is not divisible as the collective requires")                        \
  X(ERR_WINDOW, 4, "an MRAM window is misaligned, past the end of MRAM, or overlaps another") \
  X(ERR_HOST_BUFFER, 5,                                                                       \
    "a host buffer is missing or does not have the size that the collective needs")           \
  X(ERR_TYPE, 6, "the element type code is unknown")                                          \
  X(ERR_OP, 7, "the operator is unknown or not defined for the element type")                 \
  X(ERR_OPTION, 8, "an option has an unknown value or a value that this machine cannot run")  \
  X(ERR_ARGUMENT, 9, "an argument is null or unknown")                                        \
  X(ERR_SET, 10, "the DPU set is not allocated (was it freed?)")                              \
  X(ERR_DEVICE, 11, "the device reported an error")                                           \
  X(ERR_MEMORY, 12, "the host is out of memory, or MRAM has no place for a buffer")           \
  X(ERR_INTERNAL, 13, "an internal check of the library failed; please report it")            \
  X(ERR_BUSY, 14, "a non-blocking call has not been waited for")                              \
  X(ERR_FUNCTION, 15, "a function of the program returned an error")

#endif /* PIDCOMM_TABLES_H */
