"""The figures of all papers: the lists of the papers, joined."""

from __future__ import annotations

from importlib import import_module

from pidcomm import ArgumentError
from pidcomm.errors import unknown
from pidcomm_studies.papers.figure import Figure

PAPERS = ("pidcomm", "scalability", "parcels", "imex")
"""The folders of the papers. The package of each has a list FIGURES: for each figure, its module
and its name in the module.
"""
_PLACES: dict[str, str] = {
    f"{paper}/{name}": f"pidcomm_studies.papers.{paper}.{place}"
    for paper in PAPERS
    for name, place in import_module(f"pidcomm_studies.papers.{paper}").FIGURES.items()
}
NAMES = tuple(_PLACES)


def get(name: str) -> Figure:
    """Return a figure. Raises ArgumentError with the valid names."""
    if name not in _PLACES:
        raise ArgumentError(unknown("figure", name, ["all", *PAPERS, *NAMES]))
    module, _, attribute = _PLACES[name].rpartition(".")
    figure: Figure = getattr(import_module(module), attribute)
    return figure


def named(text: str) -> list[str]:
    """Return the figures that a list of names selects, separated by commas, without repetitions.

    A name is the name of a figure, or of a paper for all its figures, or ``all``. Raises
    ArgumentError for unknown names.
    """
    names: dict[str, None] = {}
    for word in text.split(","):
        chosen = [name for name in NAMES if word in ("all", name, name.partition("/")[0])]
        if not chosen:
            raise ArgumentError(unknown("figure", word, ["all", *PAPERS, *NAMES]))
        names |= dict.fromkeys(chosen)
    return list(names)
