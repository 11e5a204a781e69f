/// dpu_macro_utils.h: helper macros of DPU_FOREACH. Programs do not use these macros directly.
#ifndef DPU_MACRO_UTILS_H
#define DPU_MACRO_UTILS_H

#define DPU_MACRO_CONCAT_(a, b) a##b
#define DPU_MACRO_CONCAT(a, b) DPU_MACRO_CONCAT_(a, b)

/// Counts the arguments: 1 (the element) or 2 (the element and its index). Strict C11 does not allow an empty `...`, so the macro always
/// passes a last argument.
#define DPU_MACRO_VARIANT(...) DPU_MACRO_VARIANT_(__VA_ARGS__, 2, 1, WRONG_NUMBER_OF_ARGUMENTS)
#define DPU_MACRO_VARIANT_(first, second, variant, ...) variant

#endif  // DPU_MACRO_UTILS_H
