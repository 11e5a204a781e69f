"""Read inputs of the applications from text files, with line numbers in errors, or call generators with parameters."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from pathlib import Path
from typing import IO, Any, NoReturn, TypeVar

from pidcomm.errors import ArgumentError, Error

T = TypeVar("T")


def open_text(path: Path) -> IO[str]:
    """Open a text file. If the name ends in .gz, gzip unpacks the file. Raises Error if the file cannot be read."""
    try:
        if path.suffix == ".gz":
            return gzip.open(path, "rt", encoding="utf-8", errors="replace")
        return path.open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise Error(f"cannot read {path}: {error.strerror or error}") from None


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Return the lines of a text file without line breaks, each with its line number, from 1.

    Raises Error as `open_text`.
    """
    with open_text(path) as file:
        try:
            yield from enumerate((line.rstrip("\r\n") for line in file), 1)
        except (OSError, EOFError, zlib.error) as error:  # the errors that gzip raises
            raise Error(f"cannot read {path}: {error}") from None


def malformed(path: Path, line: int, rule: str) -> NoReturn:
    """Raise ArgumentError with the name of a file and the number of a line: ``graph.txt:7: ...``."""
    raise ArgumentError(f"{path}:{line}: {rule}")


def generated(spec: str, generators: Mapping[str, Callable[..., T]]) -> T:
    """Return the result of a generator: ``rmat`` or ``rmat:scale=12,seed=2``; parameters are its keyword arguments.

    Each parameter has the type of its default, a number or text. Raises ArgumentError for unknown generators and
    parameters, with the valid names, and for values of the wrong type.
    """
    name, parameters = _parsed(spec, generators)
    return generators[name](**parameters)


def canonical(spec: str, generators: Mapping[str, Callable[..., Any]]) -> str:
    """Return the specification of a generator with all parameters, so that a user can repeat the generator."""
    return _describe(*_parsed(spec, generators))


def _parsed(spec: str, generators: Mapping[str, Callable[..., Any]]) -> tuple[str, dict[str, Any]]:
    name, _, words = spec.partition(":")
    if name not in generators:
        raise ArgumentError(f"generator {name!r} is unknown; use {describe(generators)}")
    defaults = _defaults(generators[name])
    given = dict(defaults)
    for word in filter(None, words.split(",")):
        key, equals, text = word.partition("=")
        if key not in defaults or not equals:
            raise ArgumentError(f"{word!r} is not a parameter of generator {name}; use {_describe(name, defaults)}")
        kind = type(defaults[key])
        try:
            given[key] = kind(text)
        except ValueError:
            raise ArgumentError(f"{word!r}: {key} must be of type {kind.__name__}") from None
    return name, given


def describe(generators: Mapping[str, Callable[..., Any]]) -> str:
    """Return the generators with their parameters and defaults, as `generated` reads them."""
    return " or ".join(_describe(name, _defaults(generator)) for name, generator in generators.items())


def one_source(data: Path | None, generate: str | None) -> None:
    """Raise ArgumentError if both a file and a generator are given."""
    if data is not None and generate is not None:
        raise ArgumentError(f"give data ({data}) or a generator ({generate}), not both")


def _defaults(generator: Callable[..., Any]) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in signature(generator).parameters.items()}


def _describe(name: str, defaults: Mapping[str, Any]) -> str:
    return f"{name}:{','.join(f'{key}={value}' for key, value in defaults.items())}" if defaults else name
