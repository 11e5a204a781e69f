"""dpu-pkg-config: tells a host program's build where dpu.h and libdpuemu are."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

NAME = "dpu-pkg-config"
ROOT = Path(__file__).resolve().parent.parent.parent
# The release of the SDK whose host API libdpuemu has.
SDK_VERSION = "2025.1.0"
_PACKAGES = {"dpu"}


class PackageError(Exception):
    """What is wrong, in one sentence."""


def _library_number(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.name)]


def find_library() -> tuple[Path, str]:
    """The folder of libdpuemu and the linker's option for it: the file's full name where no libdpuemu.so is."""
    chosen = os.environ.get("DPUEMU_LIBDIR")
    folders = [Path(chosen)] if chosen else [ROOT / "lib", ROOT.parent]
    for folder in folders:
        files = sorted(folder.glob("libdpuemu.so*"), key=_library_number)
        if files:
            name = "-ldpuemu" if any(file.name == "libdpuemu.so" for file in files) else f"-l:{files[-1].name}"
            return folder.resolve(), name
    where = (
        f"the folder {chosen} that DPUEMU_LIBDIR names" if chosen else " or ".join(str(folder) for folder in folders)
    )
    raise PackageError(f"there is no libdpuemu.so in {where}; DPUEMU_LIBDIR names another folder")


def _variables() -> dict[str, str]:
    values = {
        "prefix": str(ROOT),
        "exec_prefix": str(ROOT),
        "includedir": str(ROOT / "include"),
        "bindir": str(ROOT / "bin"),
    }
    try:
        values["libdir"] = str(find_library()[0])
    except PackageError:
        values["libdir"] = str(ROOT / "lib")
    return values


def answer(words: list[str]) -> str:
    """What the options ask for, on one line, quoted for a shell."""
    parts: list[str] = []
    packages = [word for word in words if not word.startswith("-")]
    for package in packages:
        if package not in _PACKAGES:
            raise PackageError(f"there is no package {package}, only {', '.join(sorted(_PACKAGES))}")
    # The order of the output is that of pkg-config: flags, then libraries.
    known = (
        "--cflags",
        "--cflags-only-I",
        "--libs",
        "--libs-only-L",
        "--libs-only-l",
        "--libs-only-other",
        "--modversion",
        "--exists",
    )
    quiet = (
        "--silence-errors",
        "--print-errors",
        "--short-errors",
        "--static",
        "--define-prefix",
        "--dont-define-prefix",
        "--cflags-only-other",
    )
    for word in words:
        if word.startswith("-") and word not in known and word not in quiet and not word.startswith("--variable="):
            raise PackageError(f"{word} is no option of {NAME}")
    if not packages:
        raise PackageError("name the package: dpu")
    for word in words:
        if word.startswith("--variable="):
            return _variables().get(word.partition("=")[2], "")
    if "--modversion" in words:
        return SDK_VERSION
    if "--cflags" in words or "--cflags-only-I" in words:
        parts.append(f"-I{ROOT / 'include'}")
    if any(word.startswith("--libs") for word in words):
        folder, name = find_library()
        if "--libs" in words or "--libs-only-L" in words:
            parts.append(f"-L{folder}")
        if "--libs" in words or "--libs-only-other" in words:
            parts.append(f"-Wl,-rpath,{folder}")
        if "--libs" in words or "--libs-only-l" in words:
            parts.append(name)
    return shlex.join(parts)


def main() -> int:
    """Run the command line: 0, or 1 after one sentence on stderr."""
    words = sys.argv[1:]
    try:
        if "--version" in words:
            print(SDK_VERSION)
        elif "--help" in words:
            print(f"{NAME} [--cflags] [--libs] [--modversion] [--variable=prefix|includedir|libdir|bindir] dpu")
        else:
            line = answer(words)
            if line or "--exists" not in words:
                print(line)
    except PackageError as error:
        if "--silence-errors" not in words:
            print(f"{NAME}: error: {error}", file=sys.stderr)
        return 1
    return 0
