"""The commands of `pidcomm hosts`."""

from __future__ import annotations

# Importing a module adds the commands of the module. --help lists the commands in the order of the
# imports.
from pidcomm.cli.hosts import run as run  # isort: skip
from pidcomm.cli.hosts import osu as osu  # isort: skip
