"""Find the stand-in SDK, and set the environment variables with which programs find the SDK."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import cast

from dpuemu import _dpuemu
from dpuemu.errors import Error

COMPILER = "dpu-upmem-dpurte-clang"
LIBRARY = "libdpuemu.so*"
# Variables that hold lists of folders: of programs, C headers, libraries for linkers and for
# programs, Python modules.
SEARCH_PATHS = ("PATH", "CPATH", "LIBRARY_PATH", "LD_LIBRARY_PATH", "PYTHONPATH")


@cache
def sdk_root() -> Path:
    """Return the folder that holds the headers and, in bin/, the stand-in tools.

    An installed package uses its folder sdk/, a source tree its folder dpuemu/. Raises Error if
    both are missing.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "sdk", package.parent.parent):
        if (folder / "bin" / COMPILER).is_file():
            return folder
    raise Error(f"the tools that compile PE programs are missing from {package / 'sdk'}")


def temporary_folder(product: str = "dpuemu") -> AbstractContextManager[Path]:
    """Make a temporary folder PRODUCT-tmp-..., in the same way as the compiler of the stand-in
    SDK.
    """
    make = runpy.run_path(str(sdk_root() / "compiler" / "temporary.py"))["temporary_folder"]
    return cast("AbstractContextManager[Path]", make(product))


def library_folder() -> Path:
    """Return the folder of the libdpuemu that this process uses."""
    return Path(_dpuemu.__file__).resolve().parent


def environment(*, strict: bool = False) -> dict[str, str]:
    """Return the variables that let builds and programs find the stand-in SDK, as if it were
    installed in /usr.

    SEARCH_PATHS hold only the SDK's folder. DPUEMU_PYTHON makes this interpreter run the tools.
    strict: whether DPUEMU_STRICT is on. DPUEMU_LIBDIR is included only if the tools need it to find
    the library.
    """
    root = sdk_root()
    headers = runpy.run_path(str(root / "compiler" / "package.py"))["INCLUDE"]
    folders = (
        root / "bin",
        headers,
        root / "lib",
        library_folder(),
        root / "share" / "upmem" / "python",
    )
    variables = {
        **{"UPMEM_HOME": str(root), "DPUEMU_PYTHON": sys.executable},
        **dict(zip(SEARCH_PATHS, map(str, folders), strict=True)),
    }
    if not any(any(folder.glob(LIBRARY)) for folder in (root / "lib", root.parent)):
        variables["DPUEMU_LIBDIR"] = str(library_folder())
    if strict:
        variables["DPUEMU_STRICT"] = "1"
    return variables


def put_first(folder: str, variable: str, variables: Mapping[str, str]) -> str:
    """Return a search path such as PATH with `folder` first."""
    folders = [
        name for name in variables.get(variable, "").split(os.pathsep) if name and name != folder
    ]
    return os.pathsep.join([folder, *folders])
