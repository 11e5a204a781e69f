"""Applications as programs on the library: those of the PID-Comm paper (ISCA 2024, section VII),
and others.

problem = pidcomm_studies.apps.get("bfs").make(generate="rmat:scale=12")
for run in pidcomm_studies.apps.compare(problem, pes=64, techniques=["conventional", "tile"]):
    print(run.technique, run.wrong, run.result)

Each application has a folder with three files: ``__init__.py`` has its class
(`pidcomm_studies.apps.application.Application`), ``kernel.c`` is the program of the PEs, and
``cpu.cpp`` is the CPU reference that checks every result. A name in `NAMES` adds the application to
``pidcomm app``, the tests and the plots.
"""

from __future__ import annotations

from importlib import import_module

from pidcomm import ArgumentError
from pidcomm.errors import unknown
from pidcomm_studies.apps.application import Application, Run, compare, run

NAMES = ("bfs", "cc", "mlp", "gnn", "dlrm", "embedding", "ntt", "ckks")
"""Names of the applications and of their folders."""

__all__ = ["NAMES", "Application", "Run", "compare", "get", "run"]


def __dir__() -> list[str]:
    return __all__


def get(name: str) -> type[Application]:
    """Return the class of an application. Raises ArgumentError with the valid names."""
    if name not in NAMES:
        raise ArgumentError(unknown("application", name, NAMES))
    application: type[Application] = import_module(f"pidcomm_studies.apps.{name}").APPLICATION
    return application
