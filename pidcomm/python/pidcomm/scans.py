"""Scans along axes of a hypercube."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pidcomm.arguments import Axis
from pidcomm.buffers import Buffer
from pidcomm.messages import require_buffer
from pidcomm.operators import AnyOp

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pidcomm.arguments import Options
    from pidcomm.requests import Request

__all__: list[str] = []


ScanName: TypeAlias = Literal["scan", "exscan"]


class Scans:
    """The scans of `Hypercube`."""

    _call: Callable[..., Any]

    def scan(
        self,
        x: Buffer,
        axis: Axis,
        *,
        op: AnyOp = "sum",
        out: Buffer | None = None,
        wait: bool = True,
        **options: Unpack[Options],
    ) -> Buffer | Request[Buffer]:
        """scan: member q along an axis has the reduction of x over members 0 to q.

        x has any shape; returns a buffer of the same shape, or `out`, which may be x. op, wait: as
        for `allreduce`. Combines members in order and rounds after each step; for 16-bit floats,
        "avg" and `ScaledSum` add in float32. Techniques: tile and conventional.
        """
        return self._scan("scan", x, axis, op, out, wait, options)

    def exscan(
        self,
        x: Buffer,
        axis: Axis,
        *,
        op: AnyOp = "sum",
        out: Buffer | None = None,
        wait: bool = True,
        **options: Unpack[Options],
    ) -> Buffer | Request[Buffer]:
        """exscan: member q along an axis has the reduction of x over members 0 to q - 1; member 0
        has the identity of the operator.

        x, axis, op, out, wait: as for `scan`. An `Operator` needs an identity.
        """
        return self._scan("exscan", x, axis, op, out, wait, options)

    def _scan(
        self,
        name: str,
        x: Buffer,
        axis: Axis,
        op: AnyOp,
        out: Buffer | None,
        wait: bool,
        options: Options,
    ) -> Buffer | Request[Buffer]:
        require_buffer(name, x)
        result: Buffer | Request[Buffer] = self._call(
            name, x, axis, wait, op=op, out=out, options=options
        )
        return result
