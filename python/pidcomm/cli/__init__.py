"""The command line: a module per command, what they share in app.py."""

from __future__ import annotations

# Importing a module of commands adds them; --help lists them in this order.
from pidcomm.cli import info as info  # isort: skip
from pidcomm.cli import demo as demo  # isort: skip
from pidcomm.cli import plan as plan  # isort: skip
from pidcomm.cli import check as check  # isort: skip
from pidcomm.cli import bench as bench  # isort: skip
from pidcomm.cli import model as model  # isort: skip
from pidcomm.cli import accuracy as accuracy  # isort: skip
from pidcomm.cli import scale as scale  # isort: skip
from pidcomm.cli import reproduce as reproduce  # isort: skip
from pidcomm.cli import apps as apps  # isort: skip
from pidcomm.cli import pictures as pictures  # isort: skip
from pidcomm.cli import doctor as doctor  # isort: skip
from pidcomm.cli import config as config  # isort: skip
from pidcomm.cli.app import app, main

__all__ = ["app", "main"]
