"""Run programs with the checks of `dpuemu check`, and read their findings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

FINDINGS = 1  # exit code of a program that ends with success, but has findings
ALL = "all"
PATIENCE = 600  # seconds; checked launches take longer than others


def variables(
    file: Path,
    *,
    suppressions: str | None = None,
    schedules: str | None = None,
    seed: int | None = None,
    pe: str | None = None,
) -> dict[str, str]:
    """Return the environment variables of the checks (src/check/settings.h).

    file: to which the program appends its findings. suppressions: a file with patterns of findings
    to hide. schedules: the number of schedules to try of one PE of each launch, or ALL. pe: this
    PE, as RANK.CHIP.BANK, or ALL; by default the first.
    """
    wanted = {
        "DPUEMU_CHECK": "1",
        "DPUEMU_CHECK_FILE": str(file),
        "DPUEMU_CHECK_SUPPRESSIONS": suppressions,
        "DPUEMU_CHECK_SCHEDULES": schedules,
        "DPUEMU_CHECK_PE": pe,
        "DPUEMU_CHECK_SEED": None if seed is None else str(seed),
    }
    return {name: value for name, value in wanted.items() if value is not None}


def read(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Return the findings in the lines that programs have appended to a file.

    Later lines about a finding have only its new count.
    """
    findings: dict[str, dict[str, Any]] = {}
    for line in lines:
        fields = json.loads(line)
        findings.setdefault(fields.pop("id"), {}).update(fields)
    return [finding for finding in findings.values() if "kind" in finding]


def summary(findings: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line per finding, and their number."""
    for finding in findings:
        places = " and ".join(map(place_text, finding["places"]))
        times = "once" if finding["count"] == 1 else f"{finding['count']} times"
        yield f"{finding['kind']}: {places}, {times}"
    yield f"{len(findings)} finding{'' if len(findings) == 1 else 's'}"


def place_text(place: Mapping[str, Any]) -> str:
    """Return the function, the file and the line of a place."""
    if "line" in place:
        return f"{place['function']} ({Path(place['file']).name}:{place['line']})"
    return place["function"] or str(place["act"])
