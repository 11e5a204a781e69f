"""Read inputs of the applications from text files, with line numbers in errors, measure .npz files,
or call generators with parameters.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import signature
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, TypeVar, cast
from zipfile import ZipFile

from pidcomm import ArgumentError, Error
from pidcomm.bench.measure import require_bytes
from pidcomm.errors import FileContentError
from pidcomm.files import malformed, require_file

T = TypeVar("T")
GZIP_SUFFIX, GZIP_START = ".gz", b"\x1f\x8b"
MAX_LINE_BYTES = 1 << 16


def npz_sizes(path: Path) -> dict[str, int]:
    """Return the names of the arrays in an .npz file, and their bytes.

    Raises FileContentError if the file is damaged, Error if it cannot be read.
    """
    require_file(path)
    try:
        with ZipFile(path) as archive:
            return {
                entry.filename.removesuffix(".npy"): entry.file_size for entry in archive.infolist()
            }
    except OSError as error:
        raise Error(f"cannot read {path}: {error.strerror or error}") from None
    except Exception:  # zipfile raises errors of many types for a damaged file
        malformed(path, None, "not an .npz file as numpy.savez writes it")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a regular file.

    If the name ends in .gz, gzip unpacks the file. Raises FileContentError if gzip cannot unpack
    the file, Error if it cannot be read.
    """
    require_file(path)
    try:
        with gzip.open(path) if path.suffix == GZIP_SUFFIX else path.open("rb") as file:
            yield cast("IO[bytes]", file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FileContentError(f"{path}: not valid gzip data: {error}") from None
    except OSError as error:
        raise Error(f"cannot read {path}: {error.strerror or error}") from None


@contextmanager
def opened_text(path: Path, encoding: str = "utf-8") -> Iterator[IO[str]]:
    """Open a text file as `check_text` reads it. Raises Error if the file cannot be read."""
    with _opened(path) as file:
        yield TextIOWrapper(file, encoding=encoding, errors="replace")


def check_text(
    path: Path, line_bytes: int, most_lines: int | None = None, byte_bytes: int = 0
) -> None:
    """Check that the lines of a file (or its first `most_lines`) are short enough and fit in
    memory.

    line_bytes, byte_bytes: the memory for a line, and for a byte of the unpacked file; the larger
    sum counts. Raises FileContentError for a line of MAX_LINE_BYTES or more, ArgumentError if
    memory is short, Error if the file cannot be read.
    """
    lines = size = 0
    with _opened(path) as file:
        while (most_lines is None or lines < most_lines) and (block := file.read(MAX_LINE_BYTES)):
            if lines == 0 and block.startswith(GZIP_START):
                malformed(
                    path, None, f"the file is packed by gzip; its name must end in {GZIP_SUFFIX}"
                )
            ends = max(block.count(b"\n"), block.count(b"\r"))
            if ends == 0 and len(block) == MAX_LINE_BYTES:
                malformed(path, lines + 1, f"the line has {MAX_LINE_BYTES} bytes or more")
            lines += ends if most_lines is None else min(ends, most_lines - lines)
            size += len(block)
            require_bytes(max(lines * line_bytes, size * byte_bytes), f"{path}: {lines} lines")


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Return the lines of a text file without line breaks, each with its line number, from 1.

    Raises Error as `opened_text`.
    """
    with opened_text(path) as file:
        yield from enumerate((line.rstrip("\r\n") for line in file), 1)


def generated(spec: str, generators: Mapping[str, Callable[..., T]]) -> T:
    """Return the result of a generator: ``rmat`` or ``rmat:scale=12,seed=2``; parameters are its
    keyword arguments.

    Each parameter has the type of its default, a number or text. Raises ArgumentError for unknown
    generators and parameters, with the valid names, and for values of the wrong type.
    """
    name, parameters = _parsed(spec, generators)
    return generators[name](**parameters)


def canonical(spec: str, generators: Mapping[str, Callable[..., Any]]) -> str:
    """Return the specification of a generator with all parameters, so that a user can repeat the
    generator.
    """
    return _describe(*_parsed(spec, generators))


def _parsed(spec: str, generators: Mapping[str, Callable[..., Any]]) -> tuple[str, dict[str, Any]]:
    name, _, words = spec.partition(":")
    if name not in generators:
        raise ArgumentError(f"generator {name!r} is unknown; use {describe(generators)}")
    defaults = _defaults(generators[name])
    values = dict(defaults)
    for word in filter(None, words.split(",")):
        key, equals, text = word.partition("=")
        if key not in defaults or not equals:
            raise ArgumentError(
                f"{word!r} is not a parameter of generator {name}; use {_describe(name, defaults)}"
            )
        kind = type(defaults[key])
        try:
            values[key] = kind(text)
        except ValueError:
            raise ArgumentError(f"{word!r}: {key} must be of type {kind.__name__}") from None
    return name, values


def describe(generators: Mapping[str, Callable[..., Any]]) -> str:
    """Return the generators with their parameters and defaults, as `generated` reads them."""
    return " or ".join(
        _describe(name, _defaults(generator)) for name, generator in generators.items()
    )


def one_source(data: Path | None, generate: str | None) -> None:
    """Raise ArgumentError if both a file and a generator are given."""
    if data is not None and generate is not None:
        raise ArgumentError(f"give data ({data}) or a generator ({generate}), not both")


def _defaults(generator: Callable[..., Any]) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in signature(generator).parameters.items()}


def _describe(name: str, defaults: Mapping[str, Any]) -> str:
    return (
        f"{name}:{','.join(f'{key}={value}' for key, value in defaults.items())}"
        if defaults
        else name
    )
