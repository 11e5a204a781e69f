/* stream.h: streams of work. A stream records launches and collectives, and runs some ranks while
 * the host moves the bytes of others.
 *
 * A stream divides the ranks of a set into `rank_groups` groups of consecutive ranks, and steps
 * into parts. These cuts are the program's choice, or the stream plans them. Each step becomes
 * pieces: a launch has a piece for each rank group and part; a collective has one if its groups of
 * PEs lie inside rank groups (docs/streams.md), and else waits for all ranks. A piece begins when
 * all earlier pieces have ended that conflict with it. Two pieces conflict if they share a rank and
 * one writes MRAM that the other uses, if one writes host memory that the other uses, or if both
 * are launches or writes of variables on the same rank. So the results are those of the steps in
 * their recorded order, bit by bit.
 *
 * A stream has at most 65,536 pieces, where an allreduce counts its parts times twice the rank
 * groups plus 1. A recording call beyond this limit returns ERR_ARGUMENT.
 *
 * The calls of a stream, except pidcomm_stream_cancel, are for one thread at a time. While
 * pidcomm_stream_execute runs, no other thread may use the set. */
#ifndef PIDCOMM_STREAM_H
#define PIDCOMM_STREAM_H

#include <pidcomm/pidcomm.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pidcomm_stream pidcomm_stream;

/* MRAM of each PE that a launch reads, and writes if `writes` is not 0. window: as in requests. If
 * `is_cut` is not 0, launch i of P uses only bytes [i * bytes / P, (i + 1) * bytes / P). */
typedef struct pidcomm_access {
  size_t window, bytes;
  int writes, is_cut;
} pidcomm_access;

/* Host memory that a function uses, and writes if `writes` is not 0. */
typedef struct pidcomm_stream_host_access {
  const void *address;
  size_t bytes;
  int writes;
} pidcomm_stream_host_access;

/* X(ENUM, code, name): the kinds of pieces. COMBINE: the host combines rows of rank groups. */
#define PIDCOMM_STREAM_KINDS(X) \
  X(LAUNCH, 0, launch)          \
  X(COLLECTIVE, 1, collective)  \
  X(COMBINE, 2, combine)        \
  X(WRITE, 3, write)            \
  X(CALL, 4, call)

#define PIDCOMM_ROW(ENUM, code, ...) PIDCOMM_STREAM_##ENUM = code,
typedef enum pidcomm_stream_kind { PIDCOMM_STREAM_KINDS(PIDCOMM_ROW) } pidcomm_stream_kind;
#undef PIDCOMM_ROW

/* Times are seconds from the start of pidcomm_stream_execute. */
typedef struct pidcomm_stream_trace {
  PIDCOMM_SIZE(struct pidcomm_stream_trace);
  double seconds_total;
  double seconds_host;  /* the host moved bytes, started launches or ran functions */
  double seconds_pes;   /* PEs ran after at least one start of a launch */
  double seconds_setup; /* until the first piece: waiting for earlier work, choosing cuts */
  size_t pieces;
  size_t is_mixed; /* 1 on emulated DIMMs: a launch takes the modelled time of its PEs and the
                      launch cost of the machine in use (<pidcomm/model.h>: pe.launch_us, and
                      pe.launch_rank_us as time of the host); all other times are measured. 0: all
                      times are measured */
  size_t rank_groups, parts; /* the cuts; parts: of the step that has most */
} pidcomm_stream_trace;
#define PIDCOMM_STREAM_TRACE_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_stream_trace)

/* A piece. step: the number of the recording call, from 0; part: from 0. */
typedef struct pidcomm_stream_piece {
  size_t step, part;
  uint32_t first_rank, ranks;
  double begin_s, end_s;
  int kind; /* pidcomm_stream_kind */
} pidcomm_stream_piece;

/* Stores a stream without steps in *stream. If rank_groups is 0, the stream plans the cuts: the
 * first executes run and measure each step uncut, later ones try cuts whose predicted time is
 * shorter, and the stream keeps the fastest. It then may use fewer parts than a step names. Errors:
 * ERR_ARGUMENT (stream is null; rank_groups does not divide the number of ranks), ERR_SHAPE (a PE
 * is missing, and rank_groups is above 1), ERR_SET, ERR_DEVICE, ERR_MEMORY. */
PIDCOMM_API int pidcomm_stream_create(struct dpu_set_t set, uint32_t rank_groups,
                                      pidcomm_stream **stream);
/* Releases a stream before its set and its hypercubes. `stream` may be NULL. */
PIDCOMM_API void pidcomm_stream_destroy(pidcomm_stream *stream);

/* Records `parts` launches of the loaded program on all ranks. If `count` is 0, each may use all
 * MRAM. Before launch i, the stream writes {i, P} to the variable `part_variable` (uint32_t[2]) of
 * the program, unless it is NULL. P is `parts`, or a divisor of it if the stream plans the cuts.
 * Keep the program loaded until the last execute. Errors: ERR_ARGUMENT (a pointer is null, parts is
 * 0, the program has no such variable or it has not 8 bytes, parts is not 1 and part_variable is
 * NULL, the stream has a call whose technique may load a program), ERR_SIZE (the bytes of a cut
 * access are not divisible by 8 * parts, of another not by 8), ERR_WINDOW, ERR_DEVICE (a PE has no
 * program, or another than at an earlier launch or write). */
PIDCOMM_API int pidcomm_stream_launch(pidcomm_stream *stream, const pidcomm_access *accesses,
                                      size_t count, uint32_t parts, const char *part_variable);

/* Records a collective of a hypercube of all PEs of the set. If `parts` is not 1, cuts each window
 * and host row of an allreduce, reduce or broadcast into equal parts. Copies mask, operator,
 * identity and messages now. The hypercube, the host rows, and the functions and context of the
 * operator must exist until the last execute. The operator may read all host memory, so the call
 * waits for earlier steps that write any. Errors: those of pidcomm_validate,
 * ERR_SHAPE (the hypercube has not all PEs of the set), ERR_ARGUMENT (parts is 0, or not 1 for
 * another collective; the stream has launches or writes, and the technique may load a program),
 * ERR_SIZE (8 * parts does not divide `bytes`). */
PIDCOMM_API int pidcomm_stream_run(pidcomm_stream *stream, pidcomm_hypercube *cube,
                                   const pidcomm_request *request, const pidcomm_options *options,
                                   uint32_t parts);

/* Records a write of `bytes` bytes to the WRAM variable `name` of every PE; copies `data` now.
 * Errors: ERR_ARGUMENT (a pointer is null, the program has no such variable in WRAM), ERR_SIZE
 * (bytes is not divisible by 4, or the variable is smaller), and ERR_ARGUMENT and ERR_DEVICE as for
 * launches. */
PIDCOMM_API int pidcomm_stream_write(pidcomm_stream *stream, const char *name, const void *data,
                                     size_t bytes);

/* Records a call of function(context) on the thread of the execute. The function must not use the
 * set or the stream, and must not throw. If it does not return 0, the execute ends with
 * ERR_FUNCTION. `ranges`: host memory that it uses; all host memory if `count` is 0. Only these
 * ranges order functions: if two functions share another state, such as a counter or a file, name
 * it as a range that one of them writes, or give no ranges. Errors: ERR_ARGUMENT (a pointer is
 * null, a range ends beyond the last address). */
PIDCOMM_API int pidcomm_stream_call(pidcomm_stream *stream, int (*function)(void *context),
                                    void *context, const pidcomm_stream_host_access *ranges,
                                    size_t count);

/* Waits for earlier calls and asynchronous work of the set, runs all recorded steps, and waits for
 * their end. Later steps append to the stream, and another call runs all of them again. If a piece
 * fails, starts no other piece, waits for running launches, and returns the error; its sentence
 * begins with the number of the step. If `trace` is not NULL, stores the times. Errors: those of
 * the steps; ERR_ARGUMENT (stream is null), ERR_DEVICE (a PE is in fault, or its program is not
 * that of launches and writes), ERR_FUNCTION, ERR_MEMORY. */
PIDCOMM_API int pidcomm_stream_execute(pidcomm_stream *stream, pidcomm_stream_trace *trace);

/* Makes the execute that now runs start no other piece: it waits for running launches and the
 * running host pass, and returns ERR_FUNCTION. If all pieces have started, or no execute runs, does
 * nothing. Any thread may call it, also a signal handler; `stream` must not be NULL. */
PIDCOMM_API void pidcomm_stream_cancel(pidcomm_stream *stream);

/* Runs nothing: chooses the cuts of the next execute, and stores predicted times in the timeline
 * and, if `trace` is not NULL, in *trace. Before an execute has measured them,
 * launches count their launch cost, writes and functions 0 s. Errors: ERR_ARGUMENT (stream is
 * null), ERR_MEMORY. */
PIDCOMM_API int pidcomm_stream_plan(pidcomm_stream *stream, pidcomm_stream_trace *trace);

/* Stores in *count the number of pieces of the last execute that ended, or of the last plan, and in
 * `pieces` the first `capacity` of them in the order of their begins. Errors: ERR_ARGUMENT (a
 * pointer is null). */
PIDCOMM_API int pidcomm_stream_timeline(const pidcomm_stream *stream, pidcomm_stream_piece *pieces,
                                        size_t capacity, size_t *count);

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_STREAM_H */
