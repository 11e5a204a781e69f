"""Options and arguments that several commands have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from pidcomm._rows import CollectiveName, OpName
from pidcomm.arguments import AUTO
from pidcomm.cli.completion import complete_mask, complete_name
from pidcomm.plans import SHIFT, PlannedName
from pidcomm.tables import COLLECTIVES, OPS, ROWS, TECHNIQUES, TYPES

__all__ = [
    "BytesOption",
    "CollectiveArgument",
    "DtypeOption",
    "MaskOption",
    "OpOption",
    "PlannedArgument",
    "ShapeOption",
    "TechniqueOption",
    "ThreadsOption",
    "WideOption",
    "json_option",
]

if TYPE_CHECKING:  # at run time, the called functions check the names
    CollectiveArgument: TypeAlias = CollectiveName
    OpOption: TypeAlias = OpName
    PlannedArgument: TypeAlias = PlannedName
else:
    CollectiveArgument = Annotated[
        str,
        typer.Argument(
            help="Name of the collective: " + ", ".join(COLLECTIVES) + ".",
            autocompletion=complete_name(COLLECTIVES),
        ),
    ]
    PlannedArgument = Annotated[
        str,
        typer.Argument(
            help=f"Name of the collective: {', '.join(ROWS)}, or {SHIFT} (by 1, cyclic).",
            autocompletion=complete_name([*ROWS, SHIFT]),
        ),
    ]
    OpOption = Annotated[
        str,
        typer.Option("--op", help="Operator of a reduction.", autocompletion=complete_name(OPS)),
    ]
TechniqueOption = Annotated[
    str,
    typer.Option(
        "--technique",
        help=(
            f"Technique: {', '.join(TECHNIQUES)}, or {AUTO} (the technique predicted to be the"
            " fastest)."
        ),
        autocompletion=complete_name([*TECHNIQUES, AUTO]),
    ),
]
ShapeOption = Annotated[
    str, typer.Option("--shape", help="Axis lengths of the hypercube, x axis first.")
]
MaskOption = Annotated[
    str,
    typer.Option(
        "--mask", help="Axis mask: 1 selects an axis, 0 does not.", autocompletion=complete_mask
    ),
]
BytesOption = Annotated[str, typer.Option("--bytes", help="Bytes per PE, for example 64KiB.")]
DtypeOption = Annotated[
    str, typer.Option("--dtype", help="Type of the elements.", autocompletion=complete_name(TYPES))
]
ThreadsOption = Annotated[
    int, typer.Option("--threads", min=0, help="Host threads, 0: the default.")
]
WideOption = Annotated[bool, typer.Option("--wide", help="Show all columns of the table.")]


def json_option(what: str) -> Any:
    """Return the option --json of a command. what: the content of the file, such as "a JSON line
    per row".
    """
    return typer.Option(
        "--json",
        metavar="FILE|-",
        help=f"Also write {what} to a file. With -, print only the JSON.",
    )
