"""The group of the commands `pidcomm model`."""

from __future__ import annotations

from pidcomm.cli.app import add_group

group = add_group(
    "model",
    "Predict the times of collectives, and compare with measurements.",
    "pidcomm model predict allreduce --shape 32x32 --mask 10 --bytes 1MiB",
    "pidcomm model machines isca24",
)
