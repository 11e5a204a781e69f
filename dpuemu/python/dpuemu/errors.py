"""The errors of the package."""

from __future__ import annotations


class Error(RuntimeError):
    """Report that the emulated machine, its tools or the system cannot do a call."""


class ArgumentError(Error, ValueError):
    """Report an invalid argument; the message names the value and the rule.

    The failed call has changed nothing.
    """
