"""The command line.

Each command has a module; app.py lists the commands and holds their common parts.
"""

from __future__ import annotations

from pidcomm.cli.app import app, main

__all__ = ["app", "main"]
