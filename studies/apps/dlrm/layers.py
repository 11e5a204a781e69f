"""The dense layers of DLRM: their checks, and random ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from pidcomm import ArgumentError
from pidcomm.arguments import Array, as_integer

OUTPUTS_MAX = 2048  # limit of the outputs of a layer


def int32_words(name: str, values: Array) -> Array:
    """Return values as a contiguous array. Raises ArgumentError unless they are int32."""
    array = np.ascontiguousarray(values)
    if array.dtype != np.int32:
        raise ArgumentError(f"{name} of type {array.dtype} must be of type int32")
    return array


def parse_widths(name: str, text: str) -> list[int]:
    """Parse the widths in the text of an option."""
    try:
        return (
            [as_integer(name, int(word), 1, OUTPUTS_MAX) for word in text.split(",")]
            if text
            else []
        )
    except ValueError:
        raise ArgumentError(
            f"{name} ({text!r}) must be numbers of outputs, each from 1 to {OUTPUTS_MAX}, such as"
            " 64,32"
        ) from None


def random_layers(rng: np.random.Generator, widths: Sequence[int]) -> list[Array]:
    """Return layers with small weights. widths: of the inputs and the outputs of each layer."""
    return [
        rng.integers(-4, 5, (outputs, inputs + 1), np.int32) for inputs, outputs in pairwise(widths)
    ]


def widths_of(name: str, layers: Sequence[Array], inputs: int, outputs: int) -> list[int]:
    """Return the inputs of the first layer and the outputs of all layers.

    Raises ArgumentError if they do not fit.
    """
    widths = [inputs]
    for number, layer in enumerate(layers, 1):
        if (
            layer.ndim != 2
            or layer.shape[1] != widths[-1] + 1
            or not 1 <= len(layer) <= OUTPUTS_MAX
        ):
            raise ArgumentError(
                f"{name} layer {number} of shape {layer.shape} must have shape (1 to {OUTPUTS_MAX},"
                f" {widths[-1] + 1}), its inputs and a bias"
            )
        widths.append(len(layer))
    if len(widths) == 1 or widths[-1] != outputs:
        raise ArgumentError(
            f"{name} layers {widths}: there must be at least one, and the last must have {outputs}"
            " outputs"
        )
    return widths
