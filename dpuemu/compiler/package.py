"""dpu-pkg-config: print the compiler flags for dpu.h and libdpuemu."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

NAME = "dpu-pkg-config"
ROOT = Path(__file__).resolve().parent.parent
# The host API's headers: of an installed SDK, else of the source tree.
INCLUDE = ROOT / "include" / "dpu" if (ROOT / "include" / "dpu").is_dir() else ROOT / "include"
_PACKAGES = {"dpu"}


class PackageError(Exception):
    """Raised for an error; the text is one sentence."""


def _library_number(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.name)]


def find_library() -> Path:
    """Return the folder of libdpuemu."""
    chosen = os.environ.get("DPUEMU_LIBDIR")
    folders = [Path(chosen)] if chosen else [ROOT / "lib", ROOT.parent]
    for folder in folders:
        if any(folder.glob("libdpuemu.so*")):
            return folder.resolve()
    where = (
        f"the folder {chosen} that DPUEMU_LIBDIR names"
        if chosen
        else " or ".join(str(folder) for folder in folders)
    )
    raise PackageError(f"libdpuemu.so is not in {where}; set DPUEMU_LIBDIR to its folder")


def _link_option(folder: Path) -> tuple[Path, str]:
    """Return the search path and the option that link the libdpuemu in the folder.

    An installed SDK has a linker script libdpu.so, because CMake finds no `-l:NAME`.
    """
    if not os.environ.get("DPUEMU_LIBDIR") and (ROOT / "lib" / "libdpu.so").exists():
        return ROOT / "lib", "-ldpu"
    files = sorted(folder.glob("libdpuemu.so*"), key=_library_number)
    is_plain = any(file.name == "libdpuemu.so" for file in files)
    return folder, "-ldpuemu" if is_plain else f"-l:{files[-1].name}"


def sdk_version() -> str:
    """Return the release of the SDK whose host API libdpuemu implements."""
    return (ROOT / "share" / "upmem" / "version").read_text().split()[4]


def _variables() -> dict[str, str]:
    values = {
        "prefix": str(ROOT),
        "exec_prefix": str(ROOT),
        "includedir": str(INCLUDE),
        "bindir": str(ROOT / "bin"),
    }
    try:
        values["libdir"] = str(find_library())
    except PackageError:
        values["libdir"] = str(ROOT / "lib")
    return values


def answer(words: list[str]) -> str:
    """Return the requested flags on one line, quoted for a shell."""
    parts: list[str] = []
    packages = [word for word in words if not word.startswith("-")]
    for package in packages:
        if package not in _PACKAGES:
            raise PackageError(
                f"there is no package {package}, only {', '.join(sorted(_PACKAGES))}"
            )
    # The output has the order of pkg-config: flags, then libraries.
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
        if (
            word.startswith("-")
            and word not in known
            and word not in quiet
            and not word.startswith("--variable=")
        ):
            raise PackageError(f"{NAME} has no option {word}")
    if not packages:
        raise PackageError("name the package: dpu")
    for word in words:
        if word.startswith("--variable="):
            return _variables().get(word.partition("=")[2], "")
    if "--modversion" in words:
        return sdk_version()
    if "--cflags" in words or "--cflags-only-I" in words:
        parts.append(f"-I{INCLUDE}")
    if any(word.startswith("--libs") for word in words):
        folder = find_library()
        search_path, name = _link_option(folder)
        if "--libs" in words or "--libs-only-L" in words:
            parts.append(f"-L{search_path}")
        if "--libs" in words or "--libs-only-other" in words:
            # Linkers that drop unneeded libraries would drop libdpuemu if it stands before the
            # sources.
            parts += ["-Wl,--no-as-needed", f"-Wl,-rpath,{folder}"]
        if "--libs" in words or "--libs-only-l" in words:
            parts.append(name)
    if any(map(_has_space, parts)) and _are_searched():
        parts = ["-ldpu" if part[:2] == "-l" else part for part in parts if not _has_space(part)]
    return shlex.join(parts)


def _has_space(text: str) -> bool:
    return re.search(r"\s", text) is not None


def _are_searched() -> bool:
    """Return whether the compiler, the linker and programs search the folders of this SDK, as in
    the environment of `dpuemu run`. Then the output may lack paths with spaces, at which shells
    would split the unquoted output.
    """
    folders = {"CPATH": INCLUDE, "LIBRARY_PATH": ROOT / "lib", "LD_LIBRARY_PATH": ROOT.parent}
    return (ROOT / "lib" / "libdpu.so").exists() and all(
        str(folder) in os.environ.get(variable, "").split(os.pathsep)
        for variable, folder in folders.items()
    )


def main() -> int:
    """Run the command line; return 0, or 1 after one sentence on stderr."""
    words = sys.argv[1:]
    try:
        if "--version" in words:
            print(sdk_version())
        elif "--help" in words:
            print(
                f"{NAME} [--cflags] [--libs] [--modversion]"
                " [--variable=prefix|includedir|libdir|bindir] dpu"
            )
        else:
            line = answer(words)
            if line or "--exists" not in words:
                print(line)
    except PackageError as error:
        if "--silence-errors" not in words:
            print(f"{NAME}: error: {error}", file=sys.stderr)
        return 1
    return 0
