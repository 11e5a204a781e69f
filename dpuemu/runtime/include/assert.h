/// assert.h: if the expression is false, assert stops the PE with a fault that names the
/// expression. assert has no effect if NDEBUG is defined at the #include of assert.h.
#include <dpufault.h>
#include <macro_utils.h>

#ifndef __cplusplus
#define static_assert _Static_assert
#endif

#undef assert
#ifdef NDEBUG
#define assert(ignore) ((void)0)
#else
#define assert(expression)                                                               \
  ((expression) ? (void)0 : ({                                                           \
    static const char __pe_text[] __attribute__((section(".pe_strings"))) = #expression; \
    __pe_assert_failed(__pe_text);                                                       \
  }))
#endif
