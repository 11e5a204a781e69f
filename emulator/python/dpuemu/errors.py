"""The errors of the package."""

from __future__ import annotations


class Error(RuntimeError):
    """Report that the emulated machine, its tools or the system refuse a call."""


class ArgumentError(Error, ValueError):
    """Report an argument that breaks a rule; the message names the value and the rule. Nothing has changed."""
