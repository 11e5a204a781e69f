"""The output of commands.

Text goes to stdout, and JSON goes to a file or replaces the text on stdout.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from rich.console import Console

from pidcomm.bench.columns import TitledTable
from pidcomm.errors import Error

__all__ = ["Results"]

STDOUT = "-"
WIDE = 300  # more columns than any table needs


class Results:
    """Write results as text to stdout, and as JSON to the target. With target STDOUT, write only
    JSON to stdout.

    An existing file keeps its contents until the command writes the first JSON. Every write is a
    complete line or object and is flushed at once; therefore an interrupt cannot leave an
    incomplete line. Use as a context manager.
    """

    def __init__(self, target: str | None) -> None:
        """Open the file, so that errors occur before measurements.

        Raises Error if the file cannot be written.
        """
        self.has_text = target != STDOUT
        self._path = Path(target) if target is not None and self.has_text else None
        self._file: TextIO | None = None if self.has_text else sys.stdout
        self._is_new, self._is_empty = False, True
        if self._path is not None:
            self._is_new = not self._path.exists()
            self._file = self._try(lambda path: path.open("a"))

    @property
    def has_json(self) -> bool:
        """Whether JSON is written."""
        return self._file is not None

    def text(self, *parts: object, style: str | None = None) -> None:
        """Write lines or Rich objects, unless stdout is for JSON."""
        if self.has_text:
            stdout = console()
            for part in parts:
                if isinstance(part, TitledTable):
                    self.text(part.heading, style="bold")
                    for table in part.parts(stdout.width):
                        stdout.print(table, style=style, crop=False)
                    continue
                shown = (
                    wrapped(part, stdout.width)
                    if isinstance(part, str) and stdout.is_terminal
                    else part
                )
                stdout.print(shown, style=style, markup=False, soft_wrap=isinstance(part, str))

    def note(self, line: str) -> None:
        """Write an important line to the text, or to stderr if stdout is for JSON."""
        if self.has_text:
            self.text(line)
        else:
            console(stderr=True).print(line, markup=False, soft_wrap=True)

    def json(self, value: object) -> None:
        """Write an object as indented JSON."""
        self._write(json.dumps(value, indent=2))

    def json_lines(self, values: Iterable[object]) -> None:
        """Write each object as one line of JSON."""
        for value in values:
            self._write(json.dumps(value))

    def _write(self, text: str) -> None:
        file = self._file
        if file is None:
            return
        if self._path is None:
            _write_whole(file, text)
            return
        if self._is_empty and self._path.is_file():
            self._try(lambda _: file.truncate(0))
        self._is_empty = False
        self._try(lambda _: _write_whole(file, text))

    def _try(self, act: Callable[[Path], Any]) -> Any:
        """Call act(path); raise Error if the file cannot be written."""
        assert self._path is not None
        try:
            return act(self._path)
        except OSError as error:
            raise Error(f"cannot write {self._path}: {error.strerror}") from None

    def __enter__(self) -> Results:
        """Return the results."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file. Remove a new file if the command failed before its first result."""
        if self._path is None or self._file is None:
            return
        with suppress(OSError):
            self._file.close()
            if error is not None and self._is_new and self._is_empty:
                self._path.unlink()


def _write_whole(file: TextIO, text: str) -> None:
    """Write lines in one call, so that Ctrl-C cannot split them. `print` writes the line break
    separately.
    """
    file.write(f"{text}\n")
    file.flush()


def wrapped(line: str, width: int) -> str:
    """Return a line broken at words.

    All lines except the first are indented as comments, list items or values need.
    """
    if len(line) <= width:
        return line
    indent = re.match(r"#? *(?:[\w -]+: {2,})?", line)
    depth = indent.end() if indent else 0
    rest = "# " + " " * depth if line.startswith("#") else " " * max(depth, 2)
    return textwrap.fill(
        line, width, subsequent_indent=rest, break_on_hyphens=False, break_long_words=False
    )


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Let the command line handle a closed pipe."""
        raise  # the BrokenPipeError that is being handled


_live: Console | None = None  # the console of progress, if stdout and stderr are terminals


def console(*, stderr: bool = False) -> Console:
    """Return a console.

    It is coloured on terminals or by NO_COLOR and FORCE_COLOR; in files it has WIDE columns.
    """
    if _live is not None:
        return _live  # this console clears its progress line before it prints
    new_console = _Console(stderr=stderr, highlight=False, emoji=False)
    if not (sys.stderr if stderr else sys.stdout).isatty():
        new_console.width = WIDE
    return new_console


@contextmanager
def live_console() -> Iterator[Console]:
    """Yield a console for progress, quiet unless stderr is a terminal.

    If stdout is a terminal, the console also shows results.
    """
    global _live
    is_shared = sys.stderr.isatty() and sys.stdout.isatty()
    new_console = console(stderr=not is_shared)
    new_console.quiet = not sys.stderr.isatty()
    _live, before = new_console if is_shared else None, _live
    try:
        yield new_console
    finally:
        _live = before
