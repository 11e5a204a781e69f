"""dpu-upmem-dpurte-clang: compile UPMEM DPU programs for the emulator."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

from compiler import CompileError, Compiler
from linking import Program, link
from options import Options, UsageError, is_assembly, is_source, parse
from real_compiler import real_compiler
from temporary import temporary_folder

NAME = "dpu-upmem-dpurte-clang"
DPU_MACHINE = 0xF5  # e_machine in ELF files for DPUs
# The section of a program that records its command: the folder and the words, in JSON.
COMMAND = ".pe_command"
COMPILE_AGAIN = "--compile-again"


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def _is_for_real_dpus(path: str) -> bool:
    """Return whether the file is an object of the SDK's compiler."""
    with open(path, "rb") as file:
        header = file.read(20)
    return header[:4] == b"\x7fELF" and int.from_bytes(header[18:20], "little") == DPU_MACHINE


def _dependencies(options: Options, source: str) -> list[str]:
    """Return the preprocessor options that write a make rule beside the output, as gcc does when
    it compiles.
    """
    if not options.dependencies:
        return []
    output = options.output if options.output != "-" else None
    target = output or f"{_stem(source)}.{'s' if options.mode == 'assembly' else 'o'}"
    file = (
        options.dependency_file or (os.path.splitext(output)[0] if output else _stem(source)) + ".d"
    )
    return [
        *options.dependencies,
        "-MF",
        file,
        *([] if options.dependency_target else ["-MT", target]),
    ]


def _answer(compiler: Compiler, options: Options) -> int:
    if "--version" in options.question:
        print(f"{NAME} of dpuemu: compiles UPMEM DPU programs for the emulator, with", flush=True)
    return compiler.run(options.question).returncode


def _preprocess(compiler: Compiler, options: Options) -> int:
    output = ["-o", options.output] if options.output else []
    flags = [
        *compiler.preprocess_flags(
            options.standard_of(options.inputs[0] if options.inputs else "")
        ),
        *options.compiler,
        *options.dependencies,
        *compiler.include_flags(),
    ]
    file = ["-MF", options.dependency_file] if options.dependency_file else []
    return compiler.run(["-E", *flags, *file, *output, *options.inputs]).returncode


def _record(words: list[str]) -> str:
    """Return assembly that records the command."""
    numbers = ",".join(map(str, json.dumps([os.getcwd(), words]).encode()))
    return (
        f'\t.section {COMMAND},"",@progbits\n\t.byte {numbers}\n'
        '\t.section .note.GNU-stack,"",@progbits\n'
    )


def _compile_again(compiler: Compiler, program: str, output: str) -> None:
    """Compile a program again, by the command that it records, with checks or counters."""
    record = Program(Path(program).read_bytes()).contents(COMMAND)
    if not record:
        raise UsageError("the program does not record its command")
    folder, words = json.loads(record)
    os.chdir(folder)
    options = _options(words)
    for name in options.inputs:
        if not (is_source(name) or is_assembly(name)):
            raise UsageError(f"{name} is no source, so it cannot be compiled again")
    options.dependencies, options.output = [], output
    _compile(compiler, options, words)


def _options(words: list[str]) -> Options:
    """Parse the name of the compiler and its options."""
    options = parse(words[1:])
    options.is_cxx = options.is_cxx or words[0].endswith("++")
    return options


def _compile(compiler: Compiler, options: Options, words: list[str]) -> int:
    if not options.inputs:
        raise UsageError("no input file is given")
    separate = options.mode != "link"
    if separate and options.output and len(options.inputs) > 1:
        raise UsageError(
            f"-o names one file, {options.output}, but {len(options.inputs)} files would be written"
        )
    objects = []
    for source in options.inputs:
        if not os.path.exists(source):
            raise UsageError(f"{source} does not exist")
        flags = options.compiler
        if options.mode == "assembly":
            text = compiler.counted_assembly(
                source, flags, options.standard_of(source), _dependencies(options, source)
            )
            if options.output == "-":
                sys.stdout.write(text)
            else:
                Path(options.output or f"{_stem(source)}.s").write_text(
                    text, errors="surrogateescape"
                )
        elif is_source(source) or is_assembly(source):
            target = (
                Path(options.output or f"{_stem(source)}.o")
                if separate
                else compiler.temporary(".o")
            )
            compiler.object(
                source,
                target,
                flags,
                options.standard_of(source),
                _dependencies(options, source),
            )
            objects.append(str(target))
        elif _is_for_real_dpus(source):
            raise UsageError(
                f"{source} is for real DPUs; compile its source with this compiler, or name the"
                " SDK's compiler in DPUEMU_CC"
            )
        else:
            objects.append(source)
    if not separate:
        record = compiler.temporary(".s")
        record.write_text(_record(words))
        objects.append(str(record))
        link(compiler, options, objects, options.output or "a.out")
    return 0


def main() -> int:
    """Run the command line; return 0, the exit code of the failed step, or 1 for our own errors."""
    try:
        if sys.argv[1:2] == [COMPILE_AGAIN]:
            with temporary_folder("dpuemu") as folder:
                _compile_again(Compiler(folder), *sys.argv[2:])
            return 0
        if command := real_compiler(sys.argv[1:]):
            os.execv(command[0], command)
        options = _options(sys.argv)
        with temporary_folder("dpuemu") as folder:
            compiler = Compiler(folder, options.verbose)
            if options.mode == "ask":
                return _answer(compiler, options)
            if options.mode == "preprocess":
                return _preprocess(compiler, options)
            return _compile(compiler, options, sys.argv)
    except (UsageError, CompileError, OSError) as error:
        if str(error):
            print(f"{NAME}: error: {error}", file=sys.stderr)
        return error.code if isinstance(error, CompileError) else 1


def _is_for_dpus(words: list[str]) -> bool:
    """Return whether a call of `clang` compiles a PE program: by its target, else by options
    that only DPUs have.
    """
    line = "\0".join(words)
    target = re.search(r"(?:^|\0)--?target[=\0]([^\0]*)", line)
    if target:
        return target[1].startswith("dpu")
    return re.search(r"(?:^|\0)(?:-mcpu=v1|--sysroot=[^\0]*/share/upmem/)", line) is not None


def clang_main() -> int:
    """Run `clang` or `clang++`: compile PE programs; for all other programs, start the next program
    of this name in PATH, else the system's compiler.
    """
    words = sys.argv[1:]
    own = Path(sys.argv[0])
    if _is_for_dpus(words):
        return main()
    path = os.pathsep.join(
        folder
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if Path(folder).resolve() != own.resolve().parent
    )
    others = ("c++", "g++") if own.name == "clang++" else ("cc", "gcc")
    for name in (own.name, *others):
        program = shutil.which(name, path=path)
        if program is None:
            continue
        if name != own.name:
            print(
                f"{own.name}: PATH has no other {own.name} and no option names a DPU, so {program}"
                " compiles",
                file=sys.stderr,
            )
        os.execv(program, [name, *words])
    print(
        f"{own.name}: error: PATH has no {', '.join(others)} or other {own.name} for a host"
        " program; for a PE program use --target=dpu-upmem-dpurte",
        file=sys.stderr,
    )
    return 1
