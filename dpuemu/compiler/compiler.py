"""Run gcc for PE programs: compile C to counted assembly and objects, and build the archive of
the runtime.

One file, because all steps use the options, folders and temporary files of one Compiler.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import assembly
import cache
import conversions
import counting
import dialect
import gcc_flags
import mram_order
import prototypes
import source_model
from gcc_flags import RUNTIME
from options import is_source
from profiling import Counters
from real_compiler import gcc_command

COMPILER = Path(__file__).resolve().parent

# Files of the runtime whose functions access only memory of the program.
_CHECKED_FILES = ("string", "mram_bytes")

# Search paths of host programs: their headers and libraries are not for PE programs.
_HOST_SEARCH_PATHS = {"CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH"}

MOST_REPAIRS = 4  # attempts to compile; gcc names some errors only after others
NO_COMPILER = 127  # exit code with which shells report a missing command

_UNRECOGNIZED = re.compile(
    r"unrecognized (?:command-line|command line|debug output level)?\s*option"
    r" [‘'`\"]([^’'`\"]+)[’'\"]"
)
# With gcc_flags.CHECKS, gcc lets each file call __tsan_init before main.
_SANITIZER_START = re.compile(
    r"\t\.section\t\.init_array\.00099.*\n(?:\t\.align.*\n)?.*\b_sub_I_\w+\n"
)
_STRICT_GNU = re.compile(r"-std=gnu")


class CompileError(Exception):
    """Raised if a step fails.

    `code` is the exit code of the step; the text is empty or a sentence for the user (gcc has
    printed its own messages).
    """

    def __init__(self, sentence: str = "", code: int = 1) -> None:
        """Store both."""
        super().__init__(sentence)
        self.code = code


class Compiler:
    """A gcc, and the folder for its temporary files."""

    def __init__(self, folder: Path, verbose: bool = False) -> None:
        """Find gcc: DPUEMU_CC, else gcc, else cc."""
        chosen = gcc_command()
        candidates = [chosen] if chosen else [["gcc"], ["cc"]]
        words, program = next(
            ((words, path) for words in candidates if (path := shutil.which(words[0]))),
            (candidates[-1], None),
        )
        if program is None:
            missing = (
                f"DPUEMU_CC ({words[0]}) is not a program" if chosen else "PATH has no gcc or cc"
            )
            raise CompileError(
                f"{missing}; DPU programs need a GCC for x86-64 with binutils (on Debian: the"
                " package gcc); DPUEMU_CC selects another one",
                NO_COMPILER,
            )
        self.command = [program, *words[1:]]
        self.folder = folder
        self.verbose = verbose
        self._include: str | None = None
        self._count = 0
        self._unknown: set[str] = set()  # options that this gcc does not know
        self.checks = os.environ.get("DPUEMU_CHECK", "") not in ("", "0")
        self.profiles = not self.checks and os.environ.get("DPUEMU_PROFILE", "") != ""

    def temporary(self, suffix: str) -> Path:
        """Return a new path in the temporary folder."""
        self._count += 1
        return self.folder / f"{self._count}{suffix}"

    def run(
        self, arguments: list[str], capture: bool = False, show: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run gcc; its messages go to stderr, unless the caller shows them.

        Options that gcc does not know are left out, with a message on stderr unless they concern
        warnings.
        """
        words = [*self.command, *(word for word in arguments if word not in self._unknown)]
        while True:
            if self.verbose:
                print(shlex.join(words), file=sys.stderr)
            environment = {
                name: value for name, value in os.environ.items() if name not in _HOST_SEARCH_PATHS
            }
            environment["LC_ALL"] = "C.UTF-8"
            process = subprocess.run(
                words,
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if capture else None,
                stderr=subprocess.PIPE,
                text=True,
                errors="surrogateescape",
                env=environment,
            )
            unknown = (
                {option for option in _UNRECOGNIZED.findall(process.stderr) if option in words}
                if process.returncode
                else set()
            )
            if not unknown:
                if show:
                    sys.stderr.write(process.stderr)
                return process
            if unknown & set(gcc_flags.MACHINE):
                return process
            for option in sorted(unknown):
                if not option.startswith("-W"):
                    print(
                        f"dpu-upmem-dpurte-clang: {self.command[0]} does not know {option}; it is"
                        " left out",
                        file=sys.stderr,
                    )
            self._unknown |= unknown
            words = [word for word in words if word not in unknown]

    def checked(
        self, arguments: list[str], capture: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run gcc; a failure raises CompileError.

        The error has a sentence if this gcc cannot compile for x32.
        """
        process = self.run(arguments, capture)
        if process.returncode:
            raise CompileError(self._what_is_missing(), process.returncode)
        return process

    def _ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run gcc and capture its output."""
        command = [*self.command, *arguments]
        return subprocess.run(
            command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )

    def _what_is_missing(self) -> str:
        source = self.temporary(".c")
        source.write_text("int x;\n")
        probe = self._ask("-mx32", "-ffixed-r15", "-c", str(source), "-o", os.devnull)
        if probe.returncode == 0:
            return ""
        reason = next(
            (line for line in probe.stderr.splitlines() if line.strip()),
            f"exit code {probe.returncode}",
        )
        return (
            f"{' '.join(self.command)} cannot compile DPU programs: {reason.strip()}; they need a"
            " GCC for x86-64 with -mx32 and -ffixed-r15 and binutils with x32; DPUEMU_CC selects"
            " another one"
        )

    def include_flags(self) -> list[str]:
        """Return the search path: headers of the DPU, then gcc's freestanding headers."""
        if self._include is None:
            self._include = self._ask("-print-file-name=include").stdout.strip()
        return ["-nostdinc", "-isystem", str(RUNTIME / "include"), "-isystem", self._include]

    def preprocess_flags(self, standard: str) -> list[str]:
        """Return the options of the preprocessor, without the options of the user."""
        gnu_name = ["-DDPU=1"] if _STRICT_GNU.match(standard) else []
        return [
            standard,
            *(gcc_flags.CXX_MACROS if "++" in standard else []),
            *gcc_flags.LANGUAGE,
            "-mx32",
            "-mlong-double-64",
            "-fno-pic",
            "-fno-pie",
            *gcc_flags.MACROS,
            *gnu_name,
        ]

    def counted_assembly(
        self, source: str, flags: list[str], standard: str, dependencies: list[str] | None = None
    ) -> str:
        """Return the counted assembly of a C, C++ or assembly file. flags: of the user;
        dependencies: flags that write a make rule.
        """
        if not is_source(source):
            return self._functions_in_assembly(source, flags, dependencies or [])
        common = [*self.preprocess_flags(standard), *flags, *self.include_flags()]
        preprocessed = self.temporary(".i")
        self.checked(["-E", *common, *(dependencies or []), "-o", str(preprocessed), source])
        text = preprocessed.read_text(errors="surrogateescape")
        if "ext_vector_type" in text:
            raise CompileError(f"{source} has vectors (ext_vector_type); use arrays")
        try:
            in_c = assembly.replace(
                text,
                f"{RUNTIME}{os.sep}",
                lambda sentence: print(
                    f"dpu-upmem-dpurte-clang: warning: {sentence}", file=sys.stderr
                ),
            )
        except assembly.AssemblyError as error:
            raise CompileError(str(error)) from error
        if assembly.MARK in in_c:
            in_c = self._with_functions(in_c)
        adapted = source_model.adapt(in_c, "++" in standard)
        if adapted is None and (in_c != text or "++" in standard):
            adapted = in_c
        return self._counted(source, text, adapted, preprocessed, flags, standard)

    def _functions_in_assembly(self, source: str, flags: list[str], dependencies: list[str]) -> str:
        """Return the counted assembly of a file of functions in DPU assembly. flags: of the user;
        dependencies: flags that write a make rule.
        """
        text = Path(source).read_text(errors="surrogateescape")
        if not source.endswith(".s"):
            preprocessed = self.temporary(".s")
            common = [*self.preprocess_flags("-std=gnu11"), *flags, *self.include_flags()]
            words = ["-E", "-x", "assembler-with-cpp", *common]
            self.checked([*words, *dependencies, "-o", str(preprocessed), source])
            text = preprocessed.read_text(errors="surrogateescape")
        try:
            in_c = assembly.functions(text, (source, 1), (source, 1))
        except assembly.AssemblyError as error:
            raise CompileError(str(error)) from error
        in_c = self._with_functions(in_c)
        adapted = source_model.adapt(in_c) or in_c
        return self._counted(source, "", adapted, self.temporary(".i"), flags, "-std=gnu11")

    def _with_functions(self, in_c: str) -> str:
        functions = self.temporary(".h")
        words = ["-E", "-P", "-x", "c", "-o", str(functions), str(RUNTIME / "asm_block.h")]
        self.checked([*words, f"-I{RUNTIME}"])
        return assembly.with_functions(in_c, functions.read_text(), str(RUNTIME))

    def _counted(
        self,
        source: str,
        text: str,
        adapted: str | None,
        preprocessed: Path,
        flags: list[str],
        standard: str,
    ) -> str:
        """Compile C. text: the preprocessed source; adapted: the same for gcc, or None if gcc can
        compile the source; preprocessed: a file for it.
        """
        is_cxx = "++" in standard
        plain = self.temporary(".s")
        machine = [
            *([] if is_cxx else gcc_flags.LENIENCY),
            # With -ffreestanding, main of C++ needs a return statement.
            *(flag for flag in gcc_flags.LANGUAGE if not is_cxx or flag != "-ffreestanding"),
            *gcc_flags.DEBUG,
            *flags,
            *gcc_flags.DEBUG_FORMAT,
            *gcc_flags.MACHINE,
            *(
                gcc_flags.CHECKS
                if self.checks and not source.startswith(f"{RUNTIME}{os.sep}")
                else []
            ),
            "-S",
            "-o",
            str(plain),
        ]
        # printf's formats no longer match gcc's types.
        rewritten = [
            standard,
            "-fpreprocessed",
            *machine,
            *(gcc_flags.CXX if is_cxx else []),
            "-Wno-format",
            "-x",
            "c++-cpp-output" if is_cxx else "cpp-output",
            str(preprocessed),
        ]
        command = [*self.preprocess_flags(standard), *machine, *self.include_flags(), source]
        current = adapted or text
        for attempt in range(MOST_REPAIRS):
            if adapted is not None or attempt:
                preprocessed.write_text(current, errors="surrogateescape")
                command = rewritten
            process = self.run(command, show=False)
            if not process.returncode or is_cxx or not dialect.KNOWN.search(process.stderr):
                break
            previous, current = (
                current,
                self._repaired(
                    current,
                    [standard, *gcc_flags.LENIENCY, *gcc_flags.LANGUAGE, *gcc_flags.MACHINE],
                ),
            )
            if current == previous:
                break
        sys.stderr.write(process.stderr)
        if process.returncode:
            raise CompileError(self._what_is_missing(), process.returncode)
        code = plain.read_text(errors="surrogateescape")
        if self.checks:
            code = _SANITIZER_START.sub("", code)
        if "@tpoff" in code:
            raise CompileError(
                f"{source} has thread-local variables, but a DPU has none; use an array with one"
                " element per tasklet"
            )
        if is_cxx and re.search(r"^\s*\.section\s+\.(?:init_array|ctors)", code, re.MULTILINE):
            raise CompileError(
                f"{source} has a global object whose constructor would run before main, which DPU"
                " programs do not support; use a constexpr constructor"
            )
        counted = counting.count(
            code if is_cxx else mram_order.arrange(code, text),
            Counters() if self.profiles else None,
        )

        def for_avx512() -> str:
            other = self.temporary(".s")
            words = [str(other) if word == str(plain) else word for word in command]
            self.checked([*words, "-w", "-mavx512f"])
            return other.read_text(errors="surrogateescape")

        names = [] if is_cxx else prototypes.record(prototypes.OTHERS, prototypes.others(text))
        return "\n".join([conversions.replace(counted, for_avx512), *names, ""])

    def _repaired(self, preprocessed: str, flags: list[str]) -> str:
        """Return the C source with the places changed that gcc refuses and the SDK's compiler
        accepts.
        """
        plain = self.temporary(".i")
        plain.write_text(dialect.without_markers(preprocessed), errors="surrogateescape")
        syntax = [
            "-fsyntax-only",
            "-fdiagnostics-format=json",
            "-fpreprocessed",
            "-w",
            "-x",
            "cpp-output",
        ]
        process = self._ask(*flags, *syntax, str(plain))
        try:
            return dialect.repair(preprocessed, process.stderr)
        except ValueError:  # this gcc does not write JSON
            return preprocessed

    def object(
        self,
        source: str,
        target: Path,
        flags: list[str],
        standard: str,
        dependencies: list[str] | None = None,
    ) -> None:
        """Compile a C, C++ or assembly file to an object. The assembly of the runtime is x86-64
        code, which is not counted.
        """
        if Path(source).parent == RUNTIME and not is_source(source):
            self.checked(["-mx32", "-c", f"-I{RUNTIME}", *flags, "-o", str(target), source])
            return
        counted = self.temporary(".s")
        counted.write_text(
            self.counted_assembly(source, flags, standard, dependencies),
            errors="surrogateescape",
        )
        self.checked(["-mx32", "-c", "-o", str(target), str(counted)])

    def runtime(self) -> Path:
        """Return the archive of the PE-side runtime, in the temporary folder.

        Compiling it takes longer than a small program, so a cache keeps it under a hash of all its
        inputs.
        """
        archive = self.temporary(".a")
        key = self._fingerprint()
        content = cache.cached(key)
        if content is not None:
            archive.write_bytes(content)
        else:
            self._build_runtime(archive)
            cache.keep(key, archive.read_bytes())
        return archive

    def _fingerprint(self) -> str:
        digest = hashlib.sha256()
        compiler = Path(self.command[0]).resolve()
        status = compiler.stat()
        digest.update(
            repr(
                (
                    self.command,
                    str(compiler),
                    status.st_size,
                    status.st_mtime_ns,
                    self.include_flags()[-1],
                    self.checks,
                    self.profiles,
                )
            ).encode()
        )
        for folder in (RUNTIME, COMPILER):
            for file in sorted(
                file
                for file in folder.rglob("*")
                if file.suffix in (".h", ".inc", ".c", ".S", ".py")
            ):
                content = file.read_bytes()
                digest.update(f"{file.relative_to(folder)} {len(content)}\n".encode() + content)
        return digest.hexdigest()[:32]

    def _build_runtime(self, archive: Path) -> None:
        objects = []
        for source in sorted(RUNTIME.iterdir()):
            if source.suffix not in (".c", ".S") or (source.name == "check.S" and not self.checks):
                continue
            target = self.folder / f"runtime_{source.stem}.o"
            flags = ["-O2", f"-I{RUNTIME}"] if source.suffix == ".c" else []
            if self.checks and source.suffix == ".c":
                flags += gcc_flags.CHECKED_RUNTIME
                if source.stem in _CHECKED_FILES:
                    flags += [*gcc_flags.CHECKS, "--param", "tsan-instrument-func-entry-exit=0"]
            self.object(str(source), target, flags, "-std=gnu11")
            objects.append(str(target))
        if not objects:
            raise CompileError(f"the runtime is missing from {RUNTIME}")
        tool = shutil.which(self._ask("-print-prog-name=ar").stdout.strip() or "ar")
        if tool is None:
            raise CompileError("DPU programs need the program ar of binutils, which was not found")
        process = subprocess.run(
            [tool, "rcs", str(archive), *objects], check=False, stdin=subprocess.DEVNULL
        )
        if process.returncode:
            raise CompileError(code=process.returncode)
