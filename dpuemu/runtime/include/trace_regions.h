/// trace_regions.h: names parts of a PE program in `dpuemu trace`. A tasklet's regions nest. With
/// the vendor's compiler, which needs a copy of this file, the macros do nothing.
#ifndef PE_TRACE_REGIONS_H
#define PE_TRACE_REGIONS_H

#ifndef __clang__ /* dpuemu's compiler is gcc, the vendor's is Clang */
#ifdef __cplusplus
extern "C"
#endif
    void __pe_region(const char *name, unsigned is_begin);

/// Begins a region of the calling tasklet. name: a string literal.
#define TRACE_BEGIN(name)                                                         \
  do {                                                                            \
    static const char __pe_text[] __attribute__((section(".pe_strings"))) = name; \
    __pe_region(__pe_text, 1);                                                    \
  } while (0)
/// Ends the tasklet's innermost region.
#define TRACE_END() __pe_region(0, 0)
#else
#define TRACE_BEGIN(name) ((void)0)
#define TRACE_END() ((void)0)
#endif

#endif /* PE_TRACE_REGIONS_H */
