"""Write pidcomm/_rows.py, which has the rows of tables.h as Python types and methods. The build
runs this script.

python python/rows.py include/pidcomm/tables.h OUTPUT
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

HEAD = '''"""The rows of tables.h as types and methods. python/rows.py writes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import DTypeLike

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pidcomm.arguments import Array, ArrayInput, ArrayOutput, Axis, Options
    from pidcomm.buffers import Buffer
    from pidcomm.operators import AnyOp
    from pidcomm.programs import Window
    from pidcomm.requests import Request
    from pidcomm.signatures import (
        BufferMoved,
        BufferReduced,
        BufferReducedToHost,
        BufferToHost,
        FromHost,
        Moved,
        Reduced,
        ReducedToHost,
        RootedFromHost,
        RootedReducedToHost,
        RootedToHost,
        ToHost,
    )
    from pidcomm.trace import Trace

'''
# For each type of names, the table and the column of the name.
NAMES = {
    "CollectiveName": ("COLLECTIVES", 2),
    "OpName": ("OPS", 2),
    "TechniqueName": ("TECHNIQUES", 2),
    "IsaName": ("ISAS", 2),
    "CoherenceName": ("COHERENCES", 2),
    "CopyOrderName": ("COPY_ORDERS", 2),
    "OverlapName": ("OVERLAPS", 2),
    "TransportName": ("TRANSPORTS", 2),
}
# A sentence for calls with host rows over hosts.
ROOTED = """

        If the mask selects the axis of the hosts, only host `root` has the rows."""
TYPES_OF_FIELDS = {"double": "float", "int": "int", "uint64_t": "int"}


def rows_of(text: str, table: str) -> list[list[str]]:
    """Return the rows of a table. Each row is a list of columns; strings have no quotes."""
    body = re.search(rf"#define PIDCOMM_{table}\(X\)((?:.*\\\n)*.*)", text)
    if body is None:
        raise SystemExit(f"tables.h has no table PIDCOMM_{table}")
    text = re.sub(r'"\s*"', "", re.sub(r"\\\n\s*", " ", body[1]))  # join lines, then strings
    lines = re.findall(r'X\(((?:[^()"]|"[^"]*")*)\)', text)
    if len(lines) != text.count("X("):
        raise SystemExit(f"tables.h: a row of PIDCOMM_{table} has parentheses in a column")
    return [
        [column.strip().strip('"') for column in re.findall(r'(?:[^,"]|"[^"]*")+', line)]
        for line in lines
    ]


class Collective(NamedTuple):
    """A row of PIDCOMM_COLLECTIVES."""

    name: str
    takes_op: bool
    at_pes_before: bool
    at_pes_after: bool
    blocks_before: bool
    blocks_after: bool
    result: str

    @classmethod
    def of(cls, row: list[str]) -> Collective:
        """Return the row."""
        return cls(row[2], *(column == "1" for column in row[3:8]), row[9])

    def size_of(self, has_blocks: bool) -> str:
        """Return in words the size per PE of the input or output."""
        are_blocks = (self.at_pes_before and self.blocks_before) or (
            self.at_pes_after and self.blocks_after
        )
        return "`bytes`, N blocks," if has_blocks else "bytes / N" if are_blocks else "`bytes`"

    def sizes(self) -> str:
        """Return the method's sentence about sizes."""
        read, written = self.size_of(self.blocks_before), self.size_of(self.blocks_after)
        host = f"shape (groups, {'N * n' if (self.blocks_before or self.blocks_after) else 'n'})"
        if not self.at_pes_before:
            return (
                f"`host` has {host}. Writes n * itemsize bytes per PE; `bytes`, if given, must"
                " equal this."
            )
        if not self.at_pes_after:
            elements = "N * bytes / itemsize" if self.blocks_after else "bytes / itemsize"
            return (
                f"Reads `bytes` per PE. Returns the host rows, shape (groups, {elements}), in `out`"
                " if given."
            )
        in_place = (
            ""
            if read == written
            else " In place, both input and output begin at the start of the window."
        )
        return f"Reads {read} and writes {written} per PE.".replace(", per", " per") + in_place

    def buffer_sentence(self) -> str:
        """Return the method's sentence about buffers."""
        n = "n / N" if self.blocks_before and not self.blocks_after else "n"
        if self.blocks_after and not self.blocks_before:
            n = "N * n"
        if not self.at_pes_before:
            before = "(groups, N * n, ...)" if self.blocks_before else "(groups, n, ...)"
            return f"With x and axis: x has shape {before}; returns buffer `out`, shape (n, ...)."
        result = f"buffer `out`, shape ({n}, ...)"
        if not self.at_pes_after:
            result = f"host array `out`, shape (groups, {n}, ...)"
        return f"With x and axis: x is a buffer of shape (n, ...); returns {result}."

    def overloads(self, parameters: str, form: str, result: str) -> str:
        """Return the overloads for each value of `wait`."""
        return "".join(
            f"    @overload\n    def {self.name}(\n        self, {parameters}, *, wait: {wait},"
            f" **arguments: Unpack[{form}]\n    ) -> {returns}: ...\n"
            for wait, returns in (
                ("Literal[True] = True", result),
                ("Literal[False]", f"Request[{result}]"),
                ("bool", f"{result} | Request[{result}]"),
            )
        )

    def method(self, over_hosts: bool = False) -> str:
        """Return the method of `Hypercube`, or of `hosts.Cube` over hosts."""
        moves = not self.takes_op
        is_rooted = over_hosts and not (self.at_pes_before and self.at_pes_after)
        form, result = (
            ("FromHost", "Trace")
            if not self.at_pes_before
            else (
                ("Moved" if moves else "Reduced", "Trace")
                if self.at_pes_after
                else ("ToHost" if moves else "ReducedToHost", "Array")
            )
        )
        optional = "" if over_hosts else " | None = None"
        if form == "FromHost":
            parameters = [f"host: ArrayInput{optional}", "bytes: int | None = None"]
            parameters.append("dst: Window = 0")
        else:
            parameters = [f"bytes: int{optional}", "src: Window = 0"]
            parameters += ["dst: Window = 0"] if self.at_pes_after else []
            parameters += (
                ["dtype: DTypeLike = np.uint8"]
                if moves
                else [f"dtype: DTypeLike{optional}", 'op: AnyOp = "sum"']
            )
        if not self.at_pes_after:
            parameters.append("out: ArrayOutput | None = None")
        elif not over_hosts:
            parameters.append("out: Buffer | None = None")
        if is_rooted:
            form, result = f"Rooted{form}", result if self.at_pes_after else f"{result} | None"
            parameters = [
                parameter.replace("host: ArrayInput", "host: ArrayInput | None = None")
                for parameter in parameters
            ]
            parameters += ["dtype: DTypeLike = np.uint8"] if not self.at_pes_before else []
            parameters.append("root: int = 0")
        passed = "".join(f", {name}={name}" for name in (p.partition(":")[0] for p in parameters))
        overloads = self.overloads("mask: Axis" if over_hosts else "axis: Axis", form, result)
        first, passed_first, sentence, ignored = "        mask: Axis,\n", "mask", "", ""
        if not over_hosts:
            x = "Buffer" if self.at_pes_before else "ArrayInput"
            buffer_form = (
                ("BufferMoved" if moves else "BufferReduced")
                if self.at_pes_after
                else ("BufferToHost" if moves else "BufferReducedToHost")
            )
            buffer_result = "Buffer" if self.at_pes_after else "Array"
            overloads += self.overloads(f"x: {x}, axis: Axis", buffer_form, buffer_result)
            result = " | ".join(dict.fromkeys([result, buffer_result]))
            first = f"        x: Axis | {x} | None = None,\n        axis: Axis | None = None,\n"
            passed_first, sentence = "x, axis", f"\n\n        {self.buffer_sentence()}"
            # mypy does not see that `axis` may be the first argument or have its name.
            ignored = "  # type: ignore[misc]"
        listed = "".join(f"        {parameter},\n" for parameter in parameters)
        returned = " | ".join(f"{name} | Request[{name}]" for name in result.split(" | "))
        return f'''
{overloads}    def {self.name}({ignored}
        self,
{first}        *,
{listed}        wait: bool = True,
        **options: Unpack[Options],
    ) -> {returned if not over_hosts else f"{result} | Request[{result}]"}:
        """{self.name}: {self.result}.{sentence}

        {self.sizes()}{ROOTED if is_rooted else ""}
        """
        return self._call(  # type: ignore[no-any-return]
            "{self.name}", {passed_first}, wait{passed}, options=options
        )
'''

    def array_method(self, over_hosts: bool = False) -> str:
        """Return the method of `ArrayCollectives`, or of `hosts.CubeArrays` over hosts."""
        is_rooted = over_hosts and not (self.at_pes_before and self.at_pes_after)
        result = "Array | None" if is_rooted and not self.at_pes_after else "Array"
        root, passed = ("        root: int = 0,\n", ", root=root") if is_rooted else ("", "")
        columns = "N * n" if self.blocks_before else "n"
        x_shape = f"({'pes' if self.at_pes_before else 'groups'}, {columns})"
        result_shape = (
            f"({'pes' if self.at_pes_after else 'groups'}, {'N * n' if self.blocks_after else 'n'})"
        )
        op = '        op: AnyOp = "sum",\n' if self.takes_op else ""
        return f'''
    def {self.name}(
        self,
        x: ArrayInput,
        mask: Axis,
        *,
{op}        base_offset: int = 0,
        out: ArrayOutput | None = None,
{root}        **options: Unpack[Options],
    ) -> {result}:
        """{self.name}: {self.result}.

        x has shape {x_shape}; returns shape {result_shape}.{ROOTED if is_rooted else ""}
        """
        op_name = {"op" if self.takes_op else "None"}
        return self._round_trip(  # type: ignore[no-any-return]
            "{self.name}", x, mask, op_name, base_offset, out, options{passed}
        )
'''


def generate(text: str) -> str:
    """Return the module for the text of tables.h."""
    parts = [HEAD]
    for name, (table, column) in NAMES.items():
        values = ", ".join(f'"{row[column]}"' for row in rows_of(text, table))
        parts.append(f"{name}: TypeAlias = Literal[{values}]\n")
    parts.append(
        '\n\n@dataclass(frozen=True)\nclass TraceFields:\n    """The fields of `Trace`."""\n\n'
    )
    for ctype, name, table, meaning in rows_of(text, "TRACE_FIELDS"):
        kind = TYPES_OF_FIELDS[ctype] if table == "NUMBER" else f"{table.capitalize()}Name"
        parts.append(f'    {name}: {kind}\n    """{meaning}."""\n')
    collectives = [Collective.of(row) for row in rows_of(text, "COLLECTIVES")]
    parts.append('\n\nclass HypercubeCollectives:\n    """The collectives of `Hypercube`."""\n\n')
    parts.append("    _call: Any\n")
    parts += [collective.method() for collective in collectives]
    parts.append(
        '\n\nclass ArrayCollectivesBase:\n    """The collectives of `ArrayCollectives`."""\n\n'
    )
    parts.append("    _round_trip: Any\n")
    parts += [collective.array_method() for collective in collectives]
    parts.append(
        '\n\nclass HostsCollectives:\n    """The collectives of `hosts.Cube`."""\n\n    _call:'
        " Any\n"
    )
    parts += [collective.method(over_hosts=True) for collective in collectives]
    parts.append(
        '\n\nclass HostsArrayCollectives:\n    """The collectives of `hosts.CubeArrays`."""\n\n'
    )
    parts.append("    _round_trip: Any\n")
    parts += [collective.array_method(over_hosts=True) for collective in collectives]
    return "".join(parts)


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(generate(Path(sys.argv[1]).read_text()))
