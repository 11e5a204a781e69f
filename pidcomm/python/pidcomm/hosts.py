"""Hypercubes over the PEs of several hosts: the same collectives, with one more axis. One file,
because one class has all methods.

An example, which ``mpirun -n 4 python program.py`` runs on four hosts:

    from mpi4py import MPI

    local = pidcomm.allocate(pes=256).hypercube(32, 8)
    cube = pidcomm.hosts.connect(local, MPI.COMM_WORLD)
    cube.shape  # (32, 8, 4)
    y = cube.arrays.allreduce(x, "101")  # x has a row for each PE of this host
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from pidcomm import _core
from pidcomm._rows import (
    CollectiveName,
    HostsArrayCollectives,
    HostsCollectives,
    OpName,
    OverlapName,
    TransportName,
)
from pidcomm.arguments import (
    MAX_COUNT,
    Array,
    ArrayInput,
    ArrayOutput,
    Axis,
    as_flag,
    as_integer,
    as_number,
    as_shape,
    as_timeout,
    option_codes,
    row_of,
)
from pidcomm.arrays import ArrayCollectives
from pidcomm.axes import CHIPS, HOST, ORDERS
from pidcomm.batches import refuse_in_stream
from pidcomm.calls import Call, prepare_call
from pidcomm.errors import ArgumentError, shown
from pidcomm.hypercube import Hypercube
from pidcomm.notebook import hypercube_html
from pidcomm.places import Groups
from pidcomm.plans import Plan, make_request
from pidcomm.pool import DEFAULT_BYTES, Pool, open_over, require_communicator
from pidcomm.programs import Window, at_mram_bytes
from pidcomm.requests import Request
from pidcomm.sizes import format_shape
from pidcomm.tables import COLLECTIVES, OVERLAPS, STATUS_CODES, TRANSPORTS
from pidcomm.trace import Trace, trace_of
from pidcomm.transports import TIMEOUT_S, MpiTransport, Transport
from pidcomm.uncaught import abort_mpi_if_uncaught

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pidcomm.arguments import Options
    from pidcomm.signatures import AnyArguments

__all__ = [
    "TIMEOUT_S",
    "Cube",
    "CubeArrays",
    "Link",
    "MpiTransport",
    "Transport",
    "connect",
    "plan",
]


def __dir__() -> list[str]:
    return __all__


T = TypeVar("T")
Settings = tuple[
    float, float, float, int, int
]  # timeout, rate and latency of the link, codes of overlap and transport


class Link(NamedTuple):
    """An emulated link of each host, slower than the memory of one machine."""

    gb_s: float
    """GB/s in each direction; 1 GB = 1e9 bytes."""
    latency_us: float = 0.0
    """Microseconds that each message takes longer."""


class CubeArrays(HostsArrayCollectives, ArrayCollectives):  # type: ignore[misc]
    """Run collectives over hosts that take and return NumPy arrays. ``cube.arrays`` makes an object
    of this class.

    Arrays, arguments and errors are as for `ArrayCollectives`. An array at the PEs has one row per
    PE of this host. If the mask selects the axis of the hosts, an array of rows of groups is at
    host `root`; the other hosts pass an array of the same shape and dtype, whose elements are
    ignored, and get None.
    """

    def __init__(self, cube: Cube) -> None:
        super().__init__(cube)
        self._hosts_cube = cube

    def _has_rows(self, mask: str, **root: int) -> bool:
        return self._hosts_cube.has_rows(mask, root.get("root", 0))

    def _checked(self, check: Callable[[], T]) -> T:
        return self._hosts_cube.or_refuse(check)


class Cube(HostsCollectives):
    """Run collectives on the PEs of several hosts. `connect` makes an object of this class.

    The axis of the hosts is the last axis of the shape and the last character of a mask; its name
    is "host". This axis varies slowest: PE p of host h has the number h * pes + p. All hosts make
    the same calls in the same order. The hosts compare their calls before any byte moves: if
    collective, mask, bytes, dtype, op or root differ, or if one host refuses its arguments, all
    hosts raise the same error. Arguments, arrays and results are as for `Hypercube`, with the rows
    of this host.

    If a mask selects the axis of the hosts, the groups have members on all hosts, and host `root`
    has the rows of scatter, broadcast, gather and reduce. The other hosts pass ``host=None``,
    ``bytes`` and ``dtype``, and get None. Otherwise each host has the rows of its groups.

    With ``wait=False``, errors come from `Request.wait`; until then the PEs must not be used in
    another way. With MPI_THREAD_SERIALIZED, the program must also not call MPI until then.
    Source: PID-Comm (ISCA 2024), section IX-A.
    """

    def __init__(
        self,
        local: Hypercube,
        transport: Transport | Pool,
        settings: Settings,
        owns_pool: bool = False,
    ) -> None:
        """Connect; see `connect`. owns_pool: whether `close` closes the pool."""
        self._local = local
        self._host, self._hosts = transport.host, transport.hosts
        self._axes = local._axes.with_hosts(self._hosts)
        self._settings = settings
        self._pool = transport if isinstance(transport, Pool) and owns_pool else None
        self._core = local._connect(
            transport.core if isinstance(transport, Pool) else transport, settings
        )
        self.last_trace: Trace | None = None
        """Trace of the last collective that ended on this host; None before the first."""

    @property
    def local(self) -> Hypercube:
        """The hypercube of this host. Its calls do not concern other hosts."""
        return self._local

    @property
    def host(self) -> int:
        """Number of this host."""
        return self._host

    @property
    def hosts(self) -> int:
        """Number of hosts, the length of the last axis."""
        return self._hosts

    @property
    def shape(self) -> tuple[int, ...]:
        """Axis lengths, x first, the hosts last."""
        return self._axes.shape

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes, x first, "host" last."""
        return self._axes.names

    @property
    def pes(self) -> int:
        """Number of PEs of this host."""
        return self._local.pes

    @property
    def arrays(self) -> CubeArrays:
        """The collectives that take a NumPy array and return a NumPy array."""
        return CubeArrays(self)

    def __repr__(self) -> str:
        """Report the shape and the number of this host."""
        return f"<hosts.Cube {self._axes}, host {self._host} of {self._hosts}>"

    def _repr_html_(self) -> str:
        return hypercube_html(repr(self), self.shape, {"PEs per host": self._local.pes})

    def mask_of(self, axis: Axis) -> str:
        """Return the mask that selects axes, as `Hypercube.mask_of` does."""
        return self._axes.mask_of(axis)

    def groups(self, mask: Axis) -> Groups:
        """Return the number of groups with members on this host, and the number of PEs per group
        on all hosts.
        """
        mask = self.mask_of(mask)
        if len(mask) != len(self.shape):
            raise ArgumentError(
                f"the axis mask {mask!r} needs {len(self.shape)} characters, one for each axis of "
                f"{format_shape(self.shape)}; "
                "the last one selects the hosts",
                "ERR_MASK",
            )
        groups = self._local.groups(mask[:-1])
        return Groups(groups.groups, groups.group_pes * (self._hosts if mask[-1] == "1" else 1))

    def has_rows(self, mask: Axis, root: int = 0) -> bool:
        """Return whether this host has the host rows of a call."""
        return self.mask_of(mask)[-1:] != "1" or self._host == _as_root(root)

    def write(self, x: ArrayInput, offset: int = 0, **options: Unpack[Options]) -> Trace:
        """Write row p of x to PE p of this host, as `Hypercube.write` does.

        Does not concern other hosts.
        """
        return self._local.write(x, offset, **options)

    def read(
        self,
        count: int,
        dtype: DTypeLike,
        offset: int = 0,
        *,
        out: ArrayOutput | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """Read from every PE of this host, as `Hypercube.read` does.

        Does not concern other hosts.
        """
        return self._local.read(count, dtype, offset, out=out, **options)

    def validate(
        self,
        collective: CollectiveName,
        mask: Axis,
        *,
        bytes: int,
        src: Window = 0,
        dst: Window = 0,
        dtype: DTypeLike = np.uint8,
        op: OpName | None = "sum",
        root: int = 0,
        **options: Unpack[Options],
    ) -> None:
        """Compare a call on all hosts without running it; all hosts must call it.

        Raises the errors of the call.
        """

        def check() -> Callable[[], None]:
            self._local._require_own(src, dst)
            request = make_request(
                collective, self.mask_of(mask), bytes, src, dst, dtype, op, self.groups
            )
            return partial(self._core.validate, request, _as_root(root), option_codes(options))

        self.or_refuse(check)()

    def plan(
        self,
        collective: CollectiveName,
        mask: Axis,
        *,
        bytes: int,
        src: Window = 0,
        dst: Window = 0,
        dtype: DTypeLike = np.uint8,
        op: OpName | None = "sum",
        root: int = 0,
        **options: Unpack[Options],
    ) -> Plan:
        """Return the plan of this host: local passes, messages, bytes per link and memory bus.

        See `pidcomm.plan`.
        """
        self._local._require_own(src, dst)
        src, dst, options = at_mram_bytes(self._local._core_set, src, dst, options)
        mask = self.mask_of(mask)
        request = make_request(collective, mask, bytes, src, dst, dtype, op, self.groups)
        axes = self._axes
        return _plan(
            request, axes.shape, axes.order_code, self._host, root, self._settings, options
        )

    def carry_out(
        self, name: str, mask: Axis, root: int = 0, **arguments: Unpack[AnyArguments]
    ) -> tuple[Trace, Array | None]:
        """Run the collective `name` of `pidcomm.COLLECTIVES`; return its trace and the filled
        host array, or None.
        """
        self.or_refuse(partial(refuse_in_stream, name))
        mask = self.or_refuse(partial(self.mask_of, mask))
        if self._is_local(mask, root):
            trace, out = self._local.carry_out(name, mask[:-1], **arguments)
            return self._remember(trace), out
        call = self._prepare(name, mask, root, arguments)
        return self._remember(trace_of(self._core.run(*_passed(call, root)))), call.out

    def close(self) -> None:
        """Close the connection.

        The local hypercube stays. Raises Error if a request has not been waited for.
        """
        self._core.disconnect()
        if self._pool is not None:
            self._pool.close()

    def __enter__(self) -> Cube:
        """Return the cube."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self.close()

    def _call(
        self, name: str, mask: Axis, wait: bool, root: int = 0, **arguments: Unpack[AnyArguments]
    ) -> Any:
        self.or_refuse(partial(refuse_in_stream, name))
        row = row_of(COLLECTIVES, "collective", name)
        mask = self.or_refuse(partial(self.mask_of, mask))
        if self._is_local(mask, root):
            result = self._local._call(name, mask[:-1], None, wait, **arguments)
            self.last_trace = self._local.last_trace
            return result
        call = self._prepare(name, mask, root, arguments)
        passed = _passed(call, root)

        def finish(trace: Trace, _: object = arguments) -> Trace | Array | None:  # keeps buffers
            self._remember(trace)
            return trace if row.at_pes_after else call.out

        if self.or_refuse(partial(as_flag, "wait", wait)):
            return finish(trace_of(self._core.run(*passed)))
        return Request(name, self._core.start(*passed), finish)

    def _is_local(self, mask: str, root: int) -> bool:
        """Return whether the call equals the local call: on one host, if mask and root are
        right.
        """
        return self._hosts == 1 and len(mask) == len(self.shape) and _as_root(root) == 0

    def _prepare(self, name: str, mask: str, root: int, arguments: AnyArguments) -> Call:
        def prepare() -> Call:
            self._local._require_own(arguments.get("src"), arguments.get("dst"))
            check = partial(self._check, _as_root(root))
            has_rows = self.has_rows(mask, root)
            call = prepare_call(
                name,
                mask,
                self.groups,
                check,
                self._local._heap_windows,
                has_rows=has_rows,
                **arguments,
            )
            self._local._note_written(name, call.request, self.groups)
            return call

        return self.or_refuse(prepare)

    def _check(self, root: int, request: _core.Request, codes: _core.OptionCodes) -> None:
        _core.hosts_plan_json(
            self.shape,
            self._axes.order_code,
            self._host,
            request,
            root,
            codes,
            self._settings,
            None,
        )

    def or_refuse(self, body: Callable[[], T]) -> T:
        """Return body().

        If it raises, the other hosts, which would wait, raise its error in their next call.
        """
        try:
            return body()
        except Exception as error:
            other = "ERR_MEMORY" if isinstance(error, MemoryError) else "ERR_ARGUMENT"
            if self._hosts > 1:
                self._core.refuse(
                    STATUS_CODES[getattr(error, "status", other)],
                    str(error) or type(error).__name__,
                )
            raise

    def _remember(self, trace: Trace) -> Trace:
        self.last_trace = trace
        return trace


def connect(
    local: Hypercube,
    comm: Any,
    *,
    timeout: float = TIMEOUT_S,
    overlap: OverlapName = "auto",
    link: Link | float | None = None,
    transport: TransportName = "mpi",
    pool_bytes: int = DEFAULT_BYTES,
) -> Cube:
    """Connect the hypercubes of all processes of a communicator to one cube. Waits for all
    processes.

    local: the hypercube of this host, with the same shape on all hosts. comm: an mpi4py
    communicator, a `Transport`, or a `pidcomm.pool.Pool`, whose free bytes the cube takes.
    transport: how rows get from host to host; with ``"pool"`` and ``"switch"``, the processes of
    the communicator, all on this machine, open a pool of pool_bytes bytes.
    timeout: seconds without a message after which a call raises Error. overlap: whether exchanges
    between hosts overlap with local passes: ``"on"``, ``"off"``, or ``"auto"``, where the
    prediction decides. link: the rate of an emulated link in GB/s, or a `Link`, for links slower
    than the memory of one machine. After the call with a communicator, an uncaught exception in
    one process ends all processes of MPI.

    Raises ArgumentError if arguments are out of range, or if shapes or settings differ between
    hosts. Raises Error if a host does not connect in time.
    """
    if not isinstance(local, Hypercube):
        raise ArgumentError(f"the local cube ({shown(local)}) must be a Hypercube")
    if HOST in local.axes:
        raise ArgumentError(
            f"{local!r} has an axis {HOST!r}, the name of the axis of the hosts; use another name"
        )
    if isinstance(comm, Pool):
        return Cube(local, comm, settings_of(timeout, overlap, link, comm.transport))
    settings = settings_of(timeout, overlap, link, transport)
    if isinstance(comm, Transport):
        as_integer("the transport's host", comm.host, high=MAX_COUNT)
        as_integer("the transport's hosts", comm.hosts, 1, MAX_COUNT)
        as_flag("the transport's allows_any_thread", comm.allows_any_thread)
        return Cube(local, comm, settings_of(timeout, overlap, link))
    require_communicator(comm)
    abort_mpi_if_uncaught()
    if transport == "mpi":
        return Cube(local, MpiTransport(comm, settings[0]), settings)
    return Cube(
        local, open_over(comm, pool_bytes, transport == "switch", timeout), settings, owns_pool=True
    )


def settings_of(
    timeout: float, overlap: str, link: Link | float | None, transport: TransportName = "mpi"
) -> Settings:
    """Return the settings of a connection for the library, which checks the range of numbers."""
    rate = Link(0.0) if link is None else link if isinstance(link, Link) else Link(link)
    gb_s = as_number("the rate of link", rate.gb_s)
    if link is not None and gb_s == 0:
        raise ArgumentError(f"the rate of link ({shown(link)}) must not be 0")
    return (
        as_timeout(timeout),
        gb_s,
        as_number("the latency of link", rate.latency_us),
        row_of(OVERLAPS, "overlap", overlap).code,
        row_of(TRANSPORTS, "transport", transport).code,
    )


def plan(
    collective: CollectiveName,
    shape: Sequence[int],
    mask: str,
    *,
    bytes: int,
    src: int = 0,
    dst: int = 0,
    dtype: DTypeLike = np.uint8,
    op: OpName | None = "sum",
    host: int = 0,
    root: int = 0,
    overlap: OverlapName = "auto",
    link: Link | float | None = None,
    transport: TransportName = "mpi",
    **options: Unpack[Options],
) -> Plan:
    """Return the plan of one host for a collective over hosts; the last length of shape is the
    number of hosts.

    Arguments are as for `pidcomm.plan` and `connect`. The plan has the local passes, the messages,
    the bytes per link and memory bus, and predicted times. Needs neither PEs nor other hosts.
    """
    settings = settings_of(TIMEOUT_S, overlap, link, transport)
    request = make_request(collective, mask, bytes, src, dst, dtype, op)
    return _plan(request, shape, ORDERS[CHIPS], host, root, settings, options)


def _plan(
    request: _core.Request,
    shape: Sequence[int],
    order_code: int,
    host: int,
    root: int,
    settings: Settings,
    options: Options,
) -> Plan:
    host, lengths = as_integer("host", host, high=MAX_COUNT), as_shape(shape)
    codes = option_codes(options)
    return Plan(
        json.loads(
            _core.hosts_plan_json(
                lengths, order_code, host, request, _as_root(root), codes, settings, None
            )
        )
    )


def _passed(call: Call, root: int) -> tuple[Any, ...]:
    """Return the arguments of `run` and `start` of the core."""
    return (call.request, _as_root(root), *call.arguments[1:])


def _as_root(root: object) -> int:
    return as_integer("root", root, high=MAX_COUNT)
