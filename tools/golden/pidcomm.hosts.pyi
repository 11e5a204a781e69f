class Cube(HostsCollectives):
    def __init__(
        self,
        local: Hypercube,
        transport: Transport | Pool,
        settings: Settings,
        owns_pool: bool = False,
    ) -> None: ...
    @property
    def local(self) -> Hypercube: ...
    @property
    def host(self) -> int: ...
    @property
    def hosts(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def axes(self) -> tuple[str, ...]: ...
    @property
    def pes(self) -> int: ...
    @property
    def arrays(self) -> CubeArrays: ...
    def mask_of(self, axis: Axis) -> str: ...
    def groups(self, mask: Axis) -> Groups: ...
    def has_rows(self, mask: Axis, root: int = 0) -> bool: ...
    def write(self, x: ArrayInput, offset: int = 0, **options: Unpack[Options]) -> Trace: ...
    def read(
        self,
        count: int,
        dtype: DTypeLike,
        offset: int = 0,
        *,
        out: ArrayOutput | None = None,
        **options: Unpack[Options],
    ) -> Array: ...
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
    ) -> None: ...
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
    ) -> Plan: ...
    def carry_out(
        self, name: str, mask: Axis, root: int = 0, **arguments: Unpack[AnyArguments]
    ) -> tuple[Trace, Array | None]: ...
    def close(self) -> None: ...
    def or_refuse(self, body: Callable[[], T]) -> T: ...

class CubeArrays(HostsArrayCollectives, ArrayCollectives):
    def __init__(self, cube: Cube) -> None: ...

class Link(NamedTuple):
    gb_s: float
    latency_us: float = 0.0

class MpiTransport:
    def __init__(self, comm: Any, timeout: float = TIMEOUT_S) -> None: ...
    def post(
        self, host: int, is_send: bool, address: int, rows: int, bytes: int, stride: int
    ) -> Any: ...
    def test(self, handle: Any) -> bool: ...
    def abandon(self, handle: Any) -> None: ...
    def allocate(self, bytes: int) -> int: ...
    def release(self, address: int) -> None: ...
    def close(self) -> None: ...

TIMEOUT_S: float

@runtime_checkable
class Transport(Protocol):
    host: int
    hosts: int
    allows_any_thread: bool

    def post(
        self, host: int, is_send: bool, address: int, rows: int, bytes: int, stride: int
    ) -> Any: ...
    def test(self, handle: Any) -> bool: ...
    def abandon(self, handle: Any) -> None: ...
    def allocate(self, bytes: int) -> int: ...
    def release(self, address: int) -> None: ...
    def close(self) -> None: ...

def connect(
    local: Hypercube,
    comm: Any,
    *,
    timeout: float = TIMEOUT_S,
    overlap: OverlapName = "auto",
    link: Link | float | None = None,
    transport: TransportName = "mpi",
    pool_bytes: int = DEFAULT_BYTES,
) -> Cube: ...
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
) -> Plan: ...
