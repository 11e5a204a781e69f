"""Collectives that go on beside their caller."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, TypeVar

from pidcomm import _core
from pidcomm.trace import Trace

T = TypeVar("T")


class Request(Generic[T]):
    """A collective called with ``wait=False``: what it returns comes from `wait`.

    Until then its windows in MRAM and its host arrays are busy: do not write to them, nor read what it writes. It keeps
    the arrays alive. Whatever else is asked of the same PEs (a launch, another collective, a transfer) waits for its
    end, and freeing them is an error. As a ``with`` block it is waited for at the end; dropped, it is waited for too.

    The technique conventional ends before the call returns, and so do those that run a PE program where PEs reorder
    blocks (``pidcomm.TECHNIQUES``).
    """

    def __init__(self, name: str, pending: _core.Pending, finish: Callable[[Trace], T]) -> None:
        self._name = name
        self._pending = pending
        self._finish = finish
        self._result: T | None = None
        self._is_over = False

    def wait(self) -> T:
        """Wait for the end; return what the call returns with ``wait=True``, the second time as well.

        Raises Error if a device fails on the way.
        """
        try:
            return self._ended(self._pending.wait())
        finally:
            self._is_over = True

    def test(self) -> bool:
        """Return whether it has ended, without waiting; then it counts as waited for. Raises as `wait`."""
        fields = self._pending.test()
        if fields is not None:
            self._is_over = True
            self._ended(fields)
        return fields is not None

    def _ended(self, fields: dict[str, Any]) -> T:
        if self._result is None:
            self._result = self._finish(Trace(**fields))
        return self._result

    def __enter__(self) -> Request[T]:
        """Return the request."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait for the end."""
        self.wait()

    def __repr__(self) -> str:
        """Report the collective, and whether it has been waited for."""
        return f"<Request {self._name}, {'ended' if self._is_over else 'not waited for'}>"
