/* tuning.h: the pace of the passes of the library on this CPU. The values change the speed of a
 * collective and never its result.
 *
 * The library has values for some kinds of CPUs. `pidcomm tune` measures better values and writes
 * them to the tuning file, which the library reads when a process first needs the values. The file
 * is named by the environment variable PIDCOMM_TUNING (empty: no file), else it is pidcomm/tuning
 * in $XDG_CONFIG_HOME or in ~/.config. Its first line is "cpu VENDOR FAMILY MODEL", as CPUID
 * reports them. Each later line is "PASS KEY=VALUE ..." with all keys; passes without a line keep
 * their built-in values. If the file is for another CPU or has a line that is not valid, the
 * library does not use the file. */
#ifndef PIDCOMM_TUNING_H
#define PIDCOMM_TUNING_H

#include "pidcomm/pidcomm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(key, least, most, meaning): the values of a pass. A pass visits items (for example groups), and
 * in each item streams of lines. Reductions that load from several ranks use the values of
 * "<pass>_over_ranks"; if each rank has one member, they ignore step_words. reduce_blocks and
 * reduce_lanes also ignore it if an item has one member. merge ignores it, and transpose visits at
 * least 4 lines of an item. reduce_rows and reduce_rows_to_host use it if they load from 4 sections
 * or more, or if they have at most 64 input streams and load from several sections or store to host
 * rows; else they visit 16 words. step_words is a power of two; each pass has its own range, given
 * by pidcomm_tuned_pass. */
#define PIDCOMM_TUNING(X)                                                                   \
  X(step_words, 1, 512, "words of a stream to visit before the next stream")                \
  X(ahead, 1, 1024,                                                                         \
    "prefetch distance: words of a stream; in reductions and on sections: lines, counted "  \
    "over all streams")                                                                     \
  X(ahead_level, 1, 2, "level of the cache into which to prefetch")                         \
  X(members, 1, 8, "most group members that a reduction loads side by side")                \
  X(items, 1, 8, "most items to visit side by side")                                        \
  X(prefetches, 0, 1,                                                                       \
    "0: no prefetches in long steps of a reduction (avx512vbmi only), and in to_host with " \
    "step_words=8 if it stores whole lines and a call moves 16 MiB or more")

typedef struct pidcomm_tuning {
  PIDCOMM_SIZE(struct pidcomm_tuning);
#define PIDCOMM_ROW(key, ...) uint32_t key;
  PIDCOMM_TUNING(PIDCOMM_ROW)
#undef PIDCOMM_ROW
} pidcomm_tuning;
#define PIDCOMM_TUNING_INITIALIZER PIDCOMM_SIZE_OF(pidcomm_tuning)

/* Returns where the values come from, for example "built-in values for Intel CPUs". If the library
 * does not use the tuning file, the text gives the reason. The texts of this function and of the
 * next two are valid until the process ends. */
PIDCOMM_API const char *pidcomm_tuning_source(void);
/* Returns the path where the library looks for the tuning file, or "" if it looks for no file. */
PIDCOMM_API const char *pidcomm_tuning_path(void);
/* Returns the first line of a tuning file for this CPU. */
PIDCOMM_API const char *pidcomm_tuning_cpu(void);

/* Stores name, values and range of step_words of a tuned pass; `index` counts from 0. Errors:
 * ERR_ARGUMENT (a null pointer, a wrong size, or no pass with this index). */
PIDCOMM_API int pidcomm_tuned_pass(size_t index, const char **pass, pidcomm_tuning *tuning,
                                   uint32_t *least_step_words, uint32_t *most_step_words);

/* Sets the values of a pass for later calls of the process. Plans made before keep their `items`.
 * Those with reduce_rows or reduce_rows_to_host also keep their `step_words`. Any thread may call
 * pidcomm_tune at any time. Errors: ERR_ARGUMENT (a null pointer, a wrong size, an unknown pass, a
 * value outside its range). */
PIDCOMM_API int pidcomm_tune(const char *pass, const pidcomm_tuning *tuning);

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_TUNING_H */
