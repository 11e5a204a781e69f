"""The flags with which gcc compiles PE programs."""

from __future__ import annotations

from pathlib import Path

import source_model

RUNTIME = Path(__file__).resolve().parents[1] / "runtime"

_UNSIGNED = {8: "unsigned char", 16: "unsigned short", 32: "unsigned", 64: "unsigned long long"}
# Built-ins of Clang that gcc lacks.
_BUILT_INS = [
    "-D__builtin_assume(x)=((void)0)",
    *(
        f"-D__builtin_rotate{side}{bits}(x,n)=({{ {kind} __pe_x = (x); unsigned __pe_n = (n);"
        f" ({kind})(__pe_x {to} (__pe_n & {bits - 1}) | __pe_x {back} (-__pe_n & {bits - 1})); }})"
        for bits, kind in _UNSIGNED.items()
        for side, to, back in (("left", "<<", ">>"), ("right", ">>", "<<"))
    ),
    *(
        f"-D__builtin_bitreverse{bits}(x)=({{ {kind} __pe_x = (x), __pe_r = 0;"
        f" for (int __pe_i = 0; __pe_i < {bits}; ++__pe_i)"
        " __pe_r = __pe_r << 1 | (__pe_x >> __pe_i & 1); __pe_r; })"
        for bits, kind in _UNSIGNED.items()
    ),
]

# Defines the macros that the DPU's compiler predefines, and removes the macros of the host.
MACROS = [
    *_BUILT_INS,
    *("-D__DPU=1", "-D__DPU__=1"),
    *(
        "-U__x86_64__",
        "-U__x86_64",
        "-U__amd64__",
        "-U__amd64",
        "-U__k8__",
        "-U__k8",
        "-U__code_model_small__",
    ),
    *("-U__linux__", "-U__linux", "-Ulinux", "-U__gnu_linux__", "-U__unix__", "-U__unix", "-Uunix"),
    *(
        "-U__SSE__",
        "-U__SSE2__",
        "-U__SSE_MATH__",
        "-U__SSE2_MATH__",
        "-U__MMX__",
        "-U__MMX_WITH_SSE__",
        "-U__FXSR__",
    ),
    *("-U__SIZEOF_INT128__", "-U__SIZEOF_FLOAT128__", "-U__SIZEOF_FLOAT80__"),
    *(f"-U__GCC_HAVE_SYNC_COMPARE_AND_SWAP_{size}" for size in (1, 2, 4, 8)),
    *(
        "-U__WCHAR_TYPE__",
        "-D__WCHAR_TYPE__=unsigned char",
        "-U__WCHAR_MAX__",
        "-D__WCHAR_MAX__=255",
    ),
    *("-U__WCHAR_MIN__", "-D__WCHAR_MIN__=0", "-U__SIZEOF_WCHAR_T__", "-D__SIZEOF_WCHAR_T__=1"),
    *source_model.MACROS,
]

# x32: 32-bit pointers in 64-bit mode. Position-dependent: the emulator relocates symbols, which are
# plain addresses.
# r15 counts instructions; r11 and xmm15 are for the counting of steps (steps.py). Jump tables would
# take WRAM. Vector code would distort the count of DPU instructions. Without ivopts and ivcanon,
# loops compute addresses from the index and count up, as the SDK's compiler does in the loops over
# WRAM that we decoded (programs of CMU-SAFARI/SimplePIM, oscarferraz/MLP_UPMEM and
# Secure-UPMEM/SecUPMEM). With ivopts, gcc 12 also stores literals and constant structures into WRAM
# instead of MRAM.
# Address 0 is ordinary WRAM. gcc still assumes that the address of a variable is not 0.
MACHINE = [
    *(
        "-mx32",
        "-ffixed-r15",
        "-ffixed-r11",
        "-ffixed-xmm15",
        "-fno-pic",
        "-fno-pie",
        "-mpopcnt",
        "-mfpmath=sse",
        "-mlong-double-64",
    ),
    *(
        "-fno-jump-tables",
        "-fno-tree-vectorize",
        "-fno-tree-slp-vectorize",
        "-fno-tree-loop-distribute-patterns",
        "-fno-ivopts",
        "-fno-tree-loop-ivcanon",
    ),
    *(
        "-fno-stack-protector",
        "-fstack-clash-protection",  # large frames touch the inaccessible page below the stack
        "-fcf-protection=none",
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
        "-fno-exceptions",
    ),
    *(
        "-ffunction-sections",
        "-fdata-sections",
        "-fwrapv",
        "-fno-strict-aliasing",
        "-fno-delete-null-pointer-checks",
    ),
]

# With DPUEMU_CHECK set, programs call the emulator before each access to memory. These are calls of
# the thread sanitizer, which runtime/check.S defines. gcc may not add or move loads, and copies of
# memory remain calls.
CHECKS = [
    *("-fsanitize=thread", "--param", "tsan-distinguish-volatile=1"),
    *("-fno-tree-loop-im", "-fno-tree-pre", "-fno-code-hoisting", "-fno-hoist-adjacent-loads"),
    "-fno-optimize-sibling-calls",
    *(f"-fno-builtin-{name}" for name in ("memcpy", "memmove", "memset")),
]
# The runtime itself only reports which function of it the program has called.
CHECKED_RUNTIME = ["-finstrument-functions", "-DPE_CHECK"]

# Source lines and stack frames for messages about faults, in the version of DWARF that the emulator
# reads. A program may ask for more information with -g.
DEBUG = ["-g1"]
DEBUG_FORMAT = [
    *("-gdwarf-4", "-gno-variable-location-views", "-fno-var-tracking"),
    f"-ffile-prefix-map={RUNTIME}=dpuemu/runtime",
]

# Functions of math.h that a program may define, because a DPU has no C library. gcc must not
# replace or fold them.
_MATH = """
acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh erf erfc exp exp10 exp2 expm1 fdim floor
fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb
lrint lround modf nearbyint nextafter pow pow10 remainder rint round scalbn sin sincos sinh sqrt tan
tanh tgamma trunc y0 y1 yn
""".split()  # noqa: SIM905

# There is no hosted C library, but gcc expands small memcpy and memset, as the SDK's compiler does.
# printf and similar functions return void.
LANGUAGE = [
    *(
        "-ffreestanding",
        "-fbuiltin",
        "-fno-builtin-printf",
        "-fno-builtin-puts",
        "-fno-builtin-putchar",
    ),
    *(f"-fno-builtin-{name}{suffix}" for name in _MATH for suffix in ("", "f", "l")),
]

# C++ has no address spaces in gcc, so PE programs in C++ reach MRAM only by DMA. The SDK's compiler
# accepts _Static_assert in C++.
CXX_MACROS = ["-x", "c++", "-D_Static_assert=static_assert"]
CXX = ["-fno-rtti", "-fno-threadsafe-statics", "-fno-use-cxa-atexit"]

# The SDK's compiler only warns about this old C, and macros of attributes.h stand at places where
# gcc ignores some of their attributes.
LENIENCY = [
    "-Wno-attributes",
    "-Wno-error=int-conversion",
    "-Wno-error=implicit-function-declaration",
    "-Wno-error=incompatible-pointer-types",
    "-Wno-error=implicit-int",
]
