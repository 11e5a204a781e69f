/* tables.h: one row for every collective, element type, operator, technique, instruction set, coherence policy, copy order and
 * status.
 *
 * Everything that lists them (C enumerators, C names, Python names, the command line, benchmark and test grids) is expanded from here.
 * Codes are part of the ABI: add rows at the end, never renumber. */
#ifndef PIDCOMM_TABLES_H
#define PIDCOMM_TABLES_H

/* A rank without disabled PEs: its chips (lanes of a line), banks of a chip (entangled groups of the rank), and PEs. */
#define PIDCOMM_CHIPS_PER_RANK 8
#define PIDCOMM_BANKS_PER_CHIP 8
#define PIDCOMM_PES_PER_RANK (PIDCOMM_CHIPS_PER_RANK * PIDCOMM_BANKS_PER_CHIP)

/* Bytes of a word, of which blocks and offsets are multiples, and of the MRAM that every PE has. */
#define PIDCOMM_WORD_BYTES 8
#define PIDCOMM_MRAM_BYTES (64ull << 20)

/* The three steps by which the PID-Comm paper (ISCA 2024, section V) leaves the conventional way, as bits of a set: PE-assisted reordering,
 * in-register modulation, cross-domain modulation. */
#define PIDCOMM_STEP_PR 1
#define PIDCOMM_STEP_IM 2
#define PIDCOMM_STEP_CM 4

/* X(ENUM, code, name, takes an operator, input at the PEs (else in host rows), output at the PEs, input has N blocks (else one), output has
 * N blocks, steps of the paper that apply). `bytes` of a call is N blocks if a side at the PEs has N blocks, else one. The steps are those
 * of table II of the paper; CM of a reduction is for operators that treat every byte by itself. */
#define PIDCOMM_COLLECTIVES(X)                           \
  X(ALLTOALL, 0, alltoall, 0, 1, 1, 1, 1, 7)             \
  X(REDUCE_SCATTER, 1, reduce_scatter, 1, 1, 1, 1, 0, 7) \
  X(ALLREDUCE, 2, allreduce, 1, 1, 1, 0, 0, 7)           \
  X(ALLGATHER, 3, allgather, 0, 1, 1, 0, 1, 7)           \
  X(SCATTER, 4, scatter, 0, 0, 1, 1, 0, 2)               \
  X(GATHER, 5, gather, 0, 1, 0, 0, 1, 2)                 \
  X(REDUCE, 6, reduce, 1, 1, 0, 0, 0, 3)                 \
  X(BROADCAST, 7, broadcast, 0, 0, 1, 0, 0, 0)

/* X(ENUM, code, name, C type). Codes start at 16: 1, 2, 4 and 8 mean "an integer word of that many bytes". */
#define PIDCOMM_TYPES(X)          \
  X(INT8, 16, int8, int8_t)       \
  X(UINT8, 17, uint8, uint8_t)    \
  X(INT16, 18, int16, int16_t)    \
  X(UINT16, 19, uint16, uint16_t) \
  X(INT32, 20, int32, int32_t)    \
  X(UINT32, 21, uint32, uint32_t) \
  X(INT64, 22, int64, int64_t)    \
  X(UINT64, 23, uint64, uint64_t) \
  X(FLOAT32, 24, float32, float)  \
  X(FLOAT64, 25, float64, double)

/* X(ENUM, code, name, kind): `arith` wraps for integers and works for floats, `order` needs to know the sign of the type,
 * `bits` is for integers only. `or` and `and` are words of C++, so code that expands this table pastes the ENUM. */
#define PIDCOMM_OPS(X)      \
  X(SUM, 0, "sum", arith)   \
  X(PROD, 1, "prod", arith) \
  X(MIN, 2, "min", order)   \
  X(MAX, 3, "max", order)   \
  X(AND, 4, "and", bits)    \
  X(OR, 5, "or", bits)      \
  X(XOR, 6, "xor", bits)

/* X(ENUM, code, name, path, steps of the paper that it takes, collectives that it is for, needs shapes that the 8 lanes divide, runs a PE
 * program, is one that `auto` chooses from). The path, make_PATH in src/plan, says how the bytes travel.
 * Collectives are a set of bits, that of code c is 1 << c. A technique leaves out those of its steps that do not apply to a collective; if
 * none applies, it is as `conventional`. A PE program runs where PEs of a group share an entangled group: it replaces the loaded program,
 * and most collectives then need scratch MRAM. Code 0 of an option always means "the library chooses". */
#define PIDCOMM_TECHNIQUES(X)                               \
  X(TILE, 1, "tile", tile, 0, 0xFF, 0, 0, 1)                \
  X(CONVENTIONAL, 2, "conventional", sdk, 0, 0xFF, 0, 0, 1) \
  X(PR, 3, "pr", paper, 1, 0xFF, 1, 1, 1)                   \
  X(PR_IM, 4, "pr+im", paper, 3, 0xFF, 1, 1, 1)             \
  X(PR_IM_CM, 5, "pr+im+cm", paper, 7, 0xFF, 1, 1, 1)       \
  X(RING, 6, "ring", ring, 7, 0x04, 1, 1, 0)                \
  X(TREE, 7, "tree", tree, 0, 0x04, 1, 0, 0)

/* X(ENUM, code, name, level): the highest level the machine can run is the default; level 0 is never chosen by itself. */
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

/* X(ENUM, code, name, streams, turn, ahead, level): copy orders, in which the streaming limit visits memory. Each thread moves a run of
 * `streams` bank pairs side by side, `turn` words of one before it goes to the next, and prefetches `ahead` words ahead (0: leaves
 * that to the processor) into the cache of that level. */
#define PIDCOMM_COPY_ORDERS(X)                      \
  X(PLAIN, 1, "plain", 1, 8, 0, 1)                  \
  X(SEQUENTIAL, 2, "sequential", 1, 8, 32, 1)       \
  X(SEQUENTIAL_L2, 3, "sequential_l2", 1, 8, 32, 2) \
  X(BANKS4, 4, "banks4", 4, 8, 8, 1)                \
  X(BANKS4_L2, 5, "banks4_l2", 4, 8, 16, 2)         \
  X(BANKS8, 6, "banks8", 8, 8, 8, 1)

/* X(ENUM, code, what it means). The sentence with the offending values is pidcomm_last_error(). */
#define PIDCOMM_STATUSES(X)                                                                   \
  X(OK, 0, "success")                                                                         \
  X(ERR_SHAPE, 1, "the axis lengths are not a hypercube that the set's enabled PEs can form") \
  X(ERR_MASK, 2, "the axis mask is not one '0' or '1' per axis")                              \
  X(ERR_SIZE, 3, "a size breaks the collective's divisibility rule")                          \
  X(ERR_WINDOW, 4, "an MRAM window is misaligned, past the end of MRAM, or overlaps another") \
  X(ERR_HOST_BUFFER, 5, "a host buffer is missing or not of the size the collective needs")   \
  X(ERR_TYPE, 6, "the element type code is unknown")                                          \
  X(ERR_OP, 7, "the operator is unknown or not defined for the element type")                 \
  X(ERR_OPTION, 8, "an option has an unknown value or one that this machine cannot run")      \
  X(ERR_ARGUMENT, 9, "an argument is null or unknown")                                        \
  X(ERR_SET, 10, "the DPU set is not allocated (freed?)")                                     \
  X(ERR_DEVICE, 11, "the device reported an error")                                           \
  X(ERR_MEMORY, 12, "the host is out of memory")                                              \
  X(ERR_INTERNAL, 13, "a rule of the library's own was broken; please report it")             \
  X(ERR_BUSY, 14, "a non-blocking call has not been waited for")

#endif /* PIDCOMM_TABLES_H */
