"""The command line: a module for each command; app.py lists them and holds what they share."""

from __future__ import annotations

from pidcomm.cli.app import app, main

__all__ = ["app", "main"]
