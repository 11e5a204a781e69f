/// dpu_macro_utils.h: helper macros of DPU_FOREACH, and macros that paste and quote their
/// arguments.
#ifndef DPU_MACRO_UTILS_H
#define DPU_MACRO_UTILS_H

/// Paste two arguments, or quote one, after the expansion of macros in the arguments (_XSTR:
/// before).
#define _CONCAT_X(x, y) x##y
#define _CONCAT(x, y) _CONCAT_X(x, y)
#define _XSTR(x) #x
#define _STR(x) _XSTR(x)

/// Counts the arguments: 1 (the element) or 2 (the element and its index). Strict C11 does not
/// allow an empty `...`, so the macro always passes a last argument.
#define DPU_MACRO_VARIANT(...) DPU_MACRO_VARIANT_(__VA_ARGS__, 2, 1, WRONG_NUMBER_OF_ARGUMENTS)
#define DPU_MACRO_VARIANT_(first, second, variant, ...) variant

#endif  // DPU_MACRO_UTILS_H
