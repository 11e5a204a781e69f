"""Non-blocking collectives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Generic, TypeVar

from pidcomm import _core
from pidcomm.trace import Trace, trace_of

T = TypeVar("T")
U = TypeVar("U")


def first_error(requests: Iterable[Request[Any]]) -> Exception | None:
    """Wait for the end of all requests; return the first error."""
    error: Exception | None = None
    for request in requests:
        try:
            request.wait()
        except Exception as raised:
            error = error or raised
    return error


class Request(Generic[T]):
    """A collective called with ``wait=False``; `wait` returns its result.

    Until the collective has ended, do not write to the MRAM windows or the host arrays of the
    collective, and do not read its output. The request keeps the arrays alive. Later operations on
    the same PEs (a launch, a collective, a transfer) wait for the end of the collective; freeing
    the PEs raises an error. The end of a ``with`` block waits for the request. Garbage collection
    of the request waits, too.
    """

    def __init__(self, name: str, pending: _core.Pending, finish: Callable[[Trace], T]) -> None:
        self._name = name
        self._pending = pending
        self._finish = finish
        self._result: T | None = None
        self._is_over = False
        self._earlier: tuple[Request[Any], ...] = ()

    def wait(self) -> T:
        """Wait for the end of the collective; return its result. `wait` may be called again.

        Raises Error if a device fails.
        """
        error = first_error(self._earlier)
        try:
            fields = self._pending.wait()
        finally:
            self._is_over = True
            if error is not None:
                raise error
        return self._ended(fields)

    def test(self) -> bool:
        """Return at once whether the collective has ended.

        If True, `wait` is not needed. Raises Error as `wait` does.
        """
        if not all(request.test() for request in self._earlier):
            return False
        fields = self._pending.test()
        if fields is not None:
            self._is_over = True
            self._ended(fields)
        return fields is not None

    def _after(self, earlier: Iterable[Request[Any]]) -> Request[T]:
        """Make this the request of several calls, of which it is the last; return it."""
        self._earlier = tuple(earlier)
        return self

    def _then(self, make: Callable[[T], U]) -> Request[U]:
        """Return this request with the result ``make(result)``."""
        finish: Callable[[Trace], Any] = self._finish
        changed: Request[Any] = self
        changed._finish = lambda trace: make(finish(trace))
        return changed

    def _ended(self, fields: _core.RawTrace) -> T:
        if self._result is None:
            self._result = self._finish(trace_of(fields))
        return self._result

    def __enter__(self) -> Request[T]:
        """Return the request."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for the end of the collective."""
        self.wait()

    def __repr__(self) -> str:
        """Report the collective, and whether `wait` has been called."""
        return f"<Request {self._name}, {'ended' if self._is_over else 'not waited for'}>"
