"""The sentences of usage errors, for all versions of Typer."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

__all__ = ["sentence"]


def sentence(error: Any, command: Any, words: list[str]) -> str:
    """Return what is wrong. error: a UsageError that the parser of `command` raised for the words
    of the command line.
    """
    kind = type(error).__name__
    if kind == "NoSuchOption":
        options = [name for parameter in command.params for name in parameter.opts]
        near = get_close_matches(error.option_name, options, 1, 0.7)
        return f"option {error.option_name} is unknown" + "".join(
            f"; did you mean {name!r}?" for name in near
        )
    if kind == "BadOptionUsage":
        is_flag = any(word.startswith(f"{error.option_name}=") for word in words)
        return f"{error.option_name} {'takes no' if is_flag else 'needs a'} value"
    if kind == "MissingParameter":
        return f"{_name(error.param)} is missing"
    if kind == "BadParameter" and error.param is not None:
        values, _, _ = command.make_parser(error.ctx).parse_args(list(words))
        value = values.get(error.param.name)
        return (
            f"{_name(error.param)} {value!r} {_rule(error.param) or f'is wrong: {error.message}'}"
        )
    if error.message.startswith("Got unexpected extra argument"):
        extra = error.message.partition("(")[2].strip("(s) ")
        return f"the command has no argument for {extra!r}"
    return str(error.format_message())


def _name(parameter: Any) -> str:
    option = parameter.opts[0]
    if option.startswith("-"):
        return str(parameter.opts[-1])
    return f"argument {parameter.metavar or parameter.name.upper()}"


def _rule(parameter: Any) -> str:
    """Return the rule for a number, or an empty text for other values."""
    described = getattr(parameter, "type_descriptor", None)  # new versions
    limits = parameter if described else parameter.type
    kind = str(described.annotation) if described else limits.name
    if "int" not in kind and "float" not in kind:
        return ""
    low, high = getattr(limits, "min", None), getattr(limits, "max", None)
    least = (
        "" if low is None else f" of at least {low}" if high is None else f" from {low} to {high}"
    )
    return f"is not a {'whole ' if 'int' in kind else ''}number{least}"
