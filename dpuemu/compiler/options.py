"""Parse the command line of dpu-upmem-dpurte-clang into options for gcc, options for the linker
and dropped options.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from chips import Chip, choose

# Defaults of the SDK's compiler.
DEFAULT_TASKLETS = 1
DEFAULT_STACK_BYTES = 1024

# Options whose argument is the next word.
_TAKES_WORD = {
    "-D",
    "-U",
    "-I",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "--param",
}
_LINKER_TAKES_WORD = {"-L", "-l", "-Xlinker", "-u", "-z", "-T"}
_DROPPED_WITH_WORD = {
    "-target",
    "-Xclang",
    "-mllvm",
    "-isysroot",
    "--sysroot",
    "-arch",
    "-Xassembler",
    "-Xanalyzer",
    "-B",
}

# Dropped options: for clang, for other machines, or for choices of the emulator (position, machine,
# libraries, instrumentation). -Werror is dropped because gcc and clang give different warnings, and
# a program that the SDK accepts must not fail.
_DROPPED = re.compile(
    r"""-m(32|64|x32|16|cpu=.*|arch=.*|tune=.*|fpu=.*|float-abi=.*|cmodel=.*|no-sse.*|avx.*|sse.*)$
    |
    -f(no-)?(lto|pic|PIC|pie|PIE|sanitize|profile|xray|coverage|plt|stack-size-section|integrated-as
          |openmp|split-stack|stack-protector|stack-clash-protection|use-ld|ms-extensions|modules
          |cf-protection|freestanding|hosted|tree-vectorize|tree-slp-vectorize|vectorize
          |slp-vectorize|instrument-functions)([-=].*)?$
    |
    -(g0|static|shared|rdynamic|pie|no-pie|nostdlib|nostdlibinc|nostdinc|nostartfiles|nodefaultlibs
      |pg|p|coverage|save-temps.*|pipe|pthread|s)$
    |
    -l(m|c|gcc)$ |
    -(Werror|Qunused-arguments|emit-llvm|flto.*|stdlib=.*|gcc-toolchain=.*|rtlib=.*|ansi)$ |
    --(target|sysroot|gcc-toolchain|rtlib|coverage)(=.*)?$ """,
    re.VERBOSE,
)

_SOURCE = re.compile(r".*\.(c|i|cc|cp|cpp|cxx|c\+\+|ii)$", re.IGNORECASE)
_CXX_SOURCE = re.compile(r".*\.(cc|cp|cpp|cxx|c\+\+|ii)$", re.IGNORECASE)
_ASSEMBLY = re.compile(r".*\.(s|S|sx)$")


class UsageError(Exception):
    """Raised for an invalid command line; the text is one sentence."""


@dataclass
class Options:
    """A parsed command line."""

    compiler: list[str] = field(default_factory=list)  # options for preprocessing and compiling
    linker: list[str] = field(default_factory=list)
    # Sources, assembly and objects, in the order of the command line.
    inputs: list[str] = field(default_factory=list)
    output: str | None = None
    mode: str = "link"  # other modes: preprocess, assembly, object, ask
    question: list[str] = field(default_factory=list)  # options -print-... for gcc
    # Options such as -MD, -MMD, -MP, -MT target.
    dependencies: list[str] = field(default_factory=list)
    dependency_file: str | None = None
    dependency_target: bool = False
    standard: str = ""
    is_cxx: bool = False  # whether all sources are C++, not only those with a suffix of C++
    verbose: bool = False
    tasklets: int = DEFAULT_TASKLETS
    stack_default: int = DEFAULT_STACK_BYTES
    stacks: dict[int, int] = field(default_factory=dict)  # tasklet -> declared bytes
    chip: Chip = field(default_factory=lambda: choose([]))

    def standard_of(self, source: str) -> str:
        """Return the option that selects the language of the source: -std=gnu... of C or C++."""
        is_cxx = self.is_cxx or _CXX_SOURCE.match(source) is not None
        if self.standard and is_cxx == ("++" in self.standard):
            return self.standard
        return "-std=gnu++14" if is_cxx else "-std=gnu11"

    def stack_total(self) -> int:
        """Return the bytes of WRAM for all stacks, each rounded up to 8."""
        sizes = {tasklet: self.stack_default for tasklet in range(self.tasklets)} | self.stacks
        return sum((size + 7) & ~7 for size in sizes.values())


def is_source(path: str) -> bool:
    """Return whether the file is C or C++."""
    return _SOURCE.match(path) is not None


def is_assembly(path: str) -> bool:
    """Return whether the file is assembly."""
    return _ASSEMBLY.match(path) is not None


def _gnu_standard(option: str) -> str:
    """Return -std=... for the GNU dialect of that standard: only GNU dialects have named address
    spaces.
    """
    name = option.partition("=")[2]
    if name.startswith("iso9899:"):
        name = {
            "1990": "c90",
            "199409": "c90",
            "1999": "c99",
            "2011": "c11",
            "2017": "c17",
            "2018": "c17",
        }.get(name[8:], "c11")
    return "-std=" + re.sub(r"^c(\d|\+\+)", r"gnu\1", name)


def _note_macro(options: Options, definition: str) -> bool:
    """Take NR_TASKLETS and stack sizes from a macro or symbol definition.

    Return whether this was NR_TASKLETS.
    """
    name, _, value = definition.partition("=")
    number = re.match(r"\s*\(?\s*(0[xX][0-9a-fA-F]+|\d+)", value)
    if name == "NR_TASKLETS":
        if number:
            options.tasklets = int(number[1], 0)
        return True
    if number is None:
        return False
    if name == "STACK_SIZE_DEFAULT":
        options.stack_default = int(number[1], 0)
    else:
        tasklet = re.fullmatch(r"STACK_SIZE_TASKLET_(\d+)", name)
        if tasklet:
            options.stacks[int(tasklet[1])] = int(number[1], 0)
    return False


def parse(words: list[str]) -> Options:
    """Parse the command line. Raises UsageError."""
    try:
        options = Options(chip=choose([word[6:] for word in words if word.startswith("-mcpu=")]))
    except ValueError as error:
        raise UsageError(str(error)) from error
    options.compiler.append(f"-D__dpu_{options.chip.name}__=1")
    tasklets_given = False
    rest = iter(words)

    def following(option: str) -> str:
        word = next(rest, None)
        if word is None:
            raise UsageError(f"{option} needs an argument")
        return word

    modes = {
        "-c": "object",
        "-S": "assembly",
        "-E": "preprocess",
        "-M": "preprocess",
        "-MM": "preprocess",
    }
    for word in rest:
        if not word.startswith("-") or word == "-":
            options.inputs.append(word)
        elif word == "-o":
            options.output = following(word)
        elif word.startswith("-o") and len(word) > 2 and not word.startswith("-object"):
            options.output = word[2:]
        elif word in modes:
            options.mode = modes[word]
            if word.startswith("-M"):
                options.compiler.append(word)
        elif word in ("-MD", "-MMD", "-MP", "-MG"):
            options.dependencies.append(word)
        elif word.startswith("-MF"):
            options.dependency_file = word[3:] or following(word)
        elif word.startswith(("-MT", "-MQ")):
            options.dependencies += [word[:3], word[3:] or following(word)]
            options.dependency_target = True
        elif word in _DROPPED_WITH_WORD:
            following(word)
        elif word.startswith(("-std=", "--std=")):
            options.standard = _gnu_standard(word)
        elif word in ("-gline-tables-only", "-gline-directives-only"):
            options.compiler.append("-g1")
        elif word == "-pedantic-errors":
            options.compiler.append("-pedantic")
        elif word.startswith("-Wl,"):
            symbol = re.match(r"-Wl,(?:--defsym[=,])(.*)", word)
            if symbol and _note_macro(options, symbol[1]):
                tasklets_given = True
                options.compiler.append(f"-DNR_TASKLETS={options.tasklets}")
            else:
                options.linker.append(word)
        elif word in _LINKER_TAKES_WORD:
            options.linker += [word, following(word)]
        elif _DROPPED.match(word):
            continue
        elif word.startswith(("-L", "-l")):
            options.linker.append(word)
        elif word in (
            "--version",
            "-dumpversion",
            "-dumpmachine",
            "-dumpfullversion",
            "--help",
        ) or word.startswith(("-print-", "--print-")):
            options.mode = "ask"
            options.question.append(word)
        elif word in ("-v", "-###"):
            options.verbose = True
        elif word.startswith("-x"):
            options.is_cxx = "c++" in (word[2:] or following(word))
        elif word in _TAKES_WORD:
            argument = following(word)
            options.compiler += [word, argument]
            if word == "-D":
                tasklets_given = _note_macro(options, argument) or tasklets_given
        else:
            options.compiler.append(word)
            if word.startswith("-D"):
                tasklets_given = _note_macro(options, word[2:]) or tasklets_given

    if not tasklets_given:
        options.compiler.append(f"-DNR_TASKLETS={DEFAULT_TASKLETS}")
    most = options.chip.tasklets
    if not 1 <= options.tasklets <= most:
        raise UsageError(
            f"NR_TASKLETS is {options.tasklets} but a DPU ({options.chip.name}) runs 1 to {most}"
            " tasklets"
        )
    for tasklet in options.stacks:
        if tasklet >= most:
            raise UsageError(
                f"STACK_SIZE_TASKLET_{tasklet} is declared but tasklets are numbered 0 to"
                f" {most - 1}"
            )
    return options
