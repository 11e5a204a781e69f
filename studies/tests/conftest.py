"""Fixtures that tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from emulated_machine import cube as cube
from emulated_machine import pes as pes
from emulated_machine import strict_machine as strict_machine

from pidcomm import compiling, emulated

os.environ["PIDCOMM_CHOICES"] = ""  # no test depends on the user's choices


@pytest.fixture(autouse=True, scope="module")
def compile_each_program_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the PE programs of a file of tests, most of which run the same ones."""
    folder = tmp_path_factory.mktemp("programs")
    compiled = compiling.compiled
    programs: dict[str, tuple[Path, str]] = {}

    @contextmanager
    def compiled_once(
        sources: str | Sequence[Path], options: Sequence[str], header: str = ""
    ) -> Iterator[tuple[Path, str]]:
        texts = None if isinstance(sources, str) else [path.read_text() for path in sources]
        variables = {"PATH": os.environ.get("PATH"), **emulated.compiler_variables()}
        key = repr((sources, texts, options, header, variables))
        if key not in programs:
            with compiled(sources, options, header) as (program, messages):
                kept = folder / str(len(programs))
                kept.write_bytes(program.read_bytes())
            programs[key] = kept, messages
        yield programs[key]

    with pytest.MonkeyPatch.context() as patch:
        for module in ("pidcomm.pe_set", "pidcomm_studies.apps.stage"):
            patch.setattr(f"{module}.compiled", compiled_once)
        yield
