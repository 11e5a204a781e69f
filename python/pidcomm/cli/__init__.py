"""The command line. Exit codes: 0 all right, 1 a wrong result, 2 a usage error or one that the library reports."""

from __future__ import annotations

# Importing a module of commands adds them; --help lists them in this order.
from pidcomm.cli import info as info  # isort: skip
from pidcomm.cli import demo as demo  # isort: skip
from pidcomm.cli import plan as plan  # isort: skip
from pidcomm.cli import check as check  # isort: skip
from pidcomm.cli import bench as bench  # isort: skip
from pidcomm.cli import pictures as pictures  # isort: skip
from pidcomm.cli import upmem as upmem  # isort: skip
from pidcomm.cli import doctor as doctor  # isort: skip
from pidcomm.cli.app import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line."""
    app()
