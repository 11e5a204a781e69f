"""The group of the commands `pidcomm model`."""

from __future__ import annotations

import typer

from pidcomm.cli.app import Group, app

group = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Predict the times of collectives, and compare with measurements.",
    epilog="pidcomm model predict allreduce --shape 32x32 --mask 10 --bytes 1MiB\npidcomm model machines isca24",
)
app.add_typer(group, name="model")
