"""The command line.

Each command has a module. app.py lists the commands; app.py and options.py hold their common parts.
"""

from __future__ import annotations

from pidcomm.cli.app import app, main

__all__ = ["app", "main"]
