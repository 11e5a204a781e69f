"""The axes of a hypercube: their lengths and names, and the masks that names select."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Literal, TypeAlias

from pidcomm import _core
from pidcomm.arguments import LOOK_LIKE_DIGITS, MOST_AXES, Axis, as_mask, as_shape
from pidcomm.errors import ArgumentError, shown, unknown
from pidcomm.sizes import format_shape

AXIS_NAMES = tuple(_core.axis_names())
HOST = "host"  # the axis of the hosts
OrderName: TypeAlias = Literal["chips", "foreach"]
CHIPS: OrderName = "chips"
# What PE numbers count fastest: the chips of a bank, or, as DPU_FOREACH, the banks of a chip.
ORDERS: dict[OrderName, int] = {CHIPS: 0, "foreach": _core.FOREACH_ORDER}


class Axes:
    """Lengths and names of axes, x first.

    names: those that the user has given, or None. order: a name of ORDERS.
    """

    def __init__(
        self, lengths: Sequence[int], names: tuple[str, ...] | None = None, order: OrderName = CHIPS
    ) -> None:
        if not isinstance(order, str) or order not in ORDERS:
            raise ArgumentError(unknown("order", order, tuple(ORDERS)))
        self.order: OrderName = order
        self.shape = tuple(as_shape(lengths))
        self.names = AXIS_NAMES[: len(self.shape)] if names is None else names
        self._are_given = names is not None
        self._masks: dict[object, str] = {}

    def with_hosts(self, hosts: int) -> Axes:
        """Return these axes and the axis of the hosts."""
        axes = Axes((*self.shape, hosts), (*self.names, HOST), self.order)
        axes._are_given = self._are_given
        return axes

    def mask_of(self, axis: Axis) -> str:
        """Return the mask that selects the axes of a name or of several names; a mask stays as it
        is. The library checks the length of a mask.
        """
        try:
            return self._masks[axis]
        except Exception:  # an unknown axis, or any type: __hash__ belongs to the caller
            mask = self._new_mask(axis)
        if type(axis) in (str, tuple) and len(mask) == len(self.names):
            self._masks[axis] = mask
        return mask

    @property
    def order_code(self) -> int:
        """Code of the order of PE numbers."""
        return ORDERS[self.order]

    def _new_mask(self, axis: Axis) -> str:
        if isinstance(axis, str):
            if axis not in self.names and (
                not axis.isidentifier() or not set(axis.translate(LOOK_LIKE_DIGITS)) - {"0", "1"}
            ):
                return as_mask(axis)
            return self._selected([axis])
        selected: list[str] | None = None
        if isinstance(axis, Sequence) and not isinstance(axis, (bytes, bytearray, memoryview)):
            with suppress(Exception):  # of any type: __getitem__ belongs to the caller
                selected = list(islice(axis, MOST_AXES))
        return as_mask(axis) if selected is None else self._selected(selected)

    def _selected(self, names: list[str]) -> str:
        for number, name in enumerate(names):
            if not isinstance(name, str) or name not in self.names:
                raise ArgumentError(unknown("axis", name, self.names), "ERR_MASK")
            if name in names[:number]:
                raise ArgumentError(
                    f"the axes {shown(tuple(names))} contain {name!r} twice; name each of"
                    f" {', '.join(self.names)} at most once",
                    "ERR_MASK",
                )
        return "".join("1" if name in names else "0" for name in self.names)

    def __str__(self) -> str:
        """Return lengths, such as 8x8, with the names that the user has given: row=8 column=8. In
        the order of DPU_FOREACH, " order=foreach" follows.
        """
        order = "" if self.order == CHIPS else f" order={self.order}"
        if not self._are_given:
            return format_shape(self.shape) + order
        return (
            " ".join(f"{name}={n}" for name, n in zip(self.names, self.shape, strict=True)) + order
        )


def axes_of(lengths: Sequence[int], named: Mapping[str, int], order: OrderName) -> Axes:
    """Return axes from lengths, or from lengths by name.

    Raises ArgumentError if both are given, or if a name is not an identifier.
    """
    if not named:
        return Axes(lengths, order=order)
    if lengths:
        raise ArgumentError(
            f"give the lengths of the axes by position ({', '.join(map(shown, lengths))}) or by"
            f" name ({', '.join(named)}), not both",
            "ERR_SHAPE",
        )
    for name in named:
        if not name.isidentifier():
            raise ArgumentError(f"axis name {shown(name)} must be an identifier", "ERR_SHAPE")
    return Axes(tuple(named.values()), tuple(named), order)
