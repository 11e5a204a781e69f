class ArgumentError(Error, ValueError):
    def __init__(self, message: str, status: str = "ERR_ARGUMENT") -> None: ...

class ArrayCollectives(ArrayCollectivesBase):
    def __init__(self, cube: Cube) -> None: ...

class Batch:
    def __init__(self, cube: BatchCube) -> None: ...
    def run(self) -> Any: ...
    def start(self) -> Batch: ...
    def wait(self) -> Any: ...
    def plans(self, *, expand: bool = False) -> list[Plan]: ...
    def validate(self) -> None: ...

class Buffer:
    def __init__(
        self,
        storage: Storage,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        begin: int = 0,
        pe: int | None = None,
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def size(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def pes(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def window(self) -> int: ...
    def reshape(self, *shape: int | tuple[int, ...]) -> Buffer: ...
    def at(self, pe: int) -> Buffer: ...
    def get(self, out: ArrayOutput | None = None) -> Array: ...
    def grid(self) -> Array: ...
    def set(self, values: ArrayInput) -> None: ...

COHERENCES: dict

COLLECTIVES: dict

COPY_ORDERS: dict

DEFAULT_ISA: str

class Error(RuntimeError):
    def __init__(self, message: str, status: str = "ERR_INTERNAL") -> None: ...

class Groups(NamedTuple):
    groups: int
    group_pes: int

class Hypercube(HypercubeCollectives, Movements, Scans, BatchCube, MeasuredPasses):
    def __init__(
        self,
        pe_set: Owner,
        core_set: _core.Set,
        requests: WeakSet[Request[Any]],
        blocks: WeakSet[Block],
        heap_windows: HeapWindows,
        axes: Axes,
        first: int,
    ) -> None: ...
    @property
    def last_trace(self) -> Trace | None: ...
    @last_trace.setter
    def last_trace(self, trace: Trace | None) -> None: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def axes(self) -> tuple[str, ...]: ...
    @property
    def pes(self) -> int: ...
    @property
    def first(self) -> int: ...
    @property
    def order(self) -> OrderName: ...
    @property
    def unused_pes(self) -> int: ...
    @property
    def arrays(self) -> ArrayCollectives: ...
    @property
    def pe_set(self) -> Owner: ...
    def location(self, pe: int) -> Location: ...
    def coords(self, pe: int) -> tuple[int, ...]: ...
    def mask_of(self, axis: Axis) -> str: ...
    def group_of(self, pe: int, mask: Axis) -> int: ...
    def member_of(self, pe: int, mask: Axis) -> int: ...
    def groups(self, mask: Axis) -> Groups: ...
    def load(
        self,
        program: PathText | Sequence[PathText],
        *,
        tasklets: int | None = None,
        stack_bytes: int | None = None,
        options: Sequence[str] = (),
        buffers: Sequence[Buffer] = (),
    ) -> None: ...
    def fill_variables(self) -> None: ...
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
    def empty(
        self, shape: int | Sequence[int], dtype: DTypeLike, *, name: str | None = None
    ) -> Buffer: ...
    def array(
        self, x: ArrayInput, dtype: DTypeLike | None = None, *, name: str | None = None
    ) -> Buffer: ...
    def plan(
        self,
        collective: PlannedName,
        mask: Axis,
        *,
        bytes: int,
        src: Window = 0,
        dst: Window = 0,
        dtype: DTypeLike = np.uint8,
        op: AnyOp | None = "sum",
        expand: bool = False,
        **options: Unpack[Options],
    ) -> Plan: ...
    def validate(
        self,
        collective: PlannedName,
        mask: Axis,
        *,
        bytes: int,
        src: Window = 0,
        dst: Window = 0,
        dtype: DTypeLike = np.uint8,
        op: AnyOp | None = "sum",
        **options: Unpack[Options],
    ) -> None: ...
    def carry_out(
        self, name: str, mask: Axis, **arguments: Unpack[AnyArguments]
    ) -> tuple[Trace, Array | None]: ...

ISAS: dict

class Location(NamedTuple):
    rank: int
    chip: int
    bank: int

MESSAGE: VoidDType

MRAM_BYTES: int

OPS: dict

class Operator:
    def __init__(
        self,
        source: str,
        dtype: DTypeLike,
        *,
        op: OpName | None = None,
        identity: ArrayLike | None = None,
        options: list[str] | tuple[str, ...] = (),
    ) -> None: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...

class Options(TypedDict, total=False):
    technique: TechniqueName | Literal["auto"] | None
    isa: IsaName | None
    threads: int | None
    coherence: CoherenceName | None
    scratch: int | None

class OutOfMemoryError(Error, MemoryError):
    def __init__(self, message: str, status: str = "ERR_MEMORY") -> None: ...

PES_PER_RANK: int

class PeSet:
    def __init__(self, core: _core.Set) -> None: ...
    @property
    def pes(self) -> int: ...
    @property
    def ranks(self) -> int: ...
    @property
    def usable_pes(self) -> int: ...
    @property
    def is_freed(self) -> bool: ...
    def hypercube(
        self, /, *lengths: int, first: int = 0, order: OrderName = "chips", **axes: int
    ) -> Hypercube: ...
    def load(
        self,
        program: PathText | Sequence[PathText],
        *,
        tasklets: int | None = None,
        stack_bytes: int | None = None,
        options: Sequence[str] = (),
        buffers: Sequence[Buffer] = (),
    ) -> None: ...
    def launch(self, *, wait: bool = True) -> None: ...
    def wait(self) -> None: ...
    @contextmanager
    def stream(self, rank_groups: int | None = None, *, parts: int = 1) -> Iterator[Stream]: ...
    def symbol(self, name: str) -> Symbol: ...
    def buffer(self, name: str, shape: int | Sequence[int], dtype: DTypeLike) -> Buffer: ...
    def logs(self) -> list[str]: ...
    def log(self, pe: int) -> str: ...
    @property
    def dpu_set(self) -> bytes: ...
    def free(self) -> None: ...

class Plan(dict[str, Any]): ...

@dataclass(frozen=True)
class Record:
    hypercube: int
    shape: str
    call: int
    collective: str | None
    mask: str
    bytes: int
    dtype: str | None
    op: str | None
    requests: int
    request: int
    state: str
    status: str
    sentence: str
    awaited_host: int | None
    awaited_hosts: int
    started_s: float
    elapsed_s: float
    file: str | None
    line: int
    text: str
    trace: Trace | None

class Records(list[Record]): ...

class Request(Generic[T]):
    def __init__(self, name: str, pending: _core.Pending, finish: Callable[[Trace], T]) -> None: ...
    def wait(self) -> T: ...
    def test(self) -> bool: ...

STATUSES: dict

@dataclass(frozen=True)
class ScaledSum:
    factor: float

class Stream:
    def __init__(
        self,
        core_set: _core.Set,
        symbol: Callable[[str], Symbol],
        heap_windows: HeapWindows,
        rank_groups: int | None,
        parts: int,
    ) -> None: ...
    def launch(
        self,
        reads: Sequence[Buffer] = (),
        writes: Sequence[Buffer] = (),
        whole: Sequence[Buffer] = (),
        *,
        parts: int | None = None,
        part: str | None = None,
    ) -> None: ...
    def write(self, name: str, values: ArrayLike, *, dtype: DTypeLike | None = None) -> None: ...
    def call(
        self,
        function: Callable[[], object],
        reads: Sequence[Array] = (),
        writes: Sequence[Array] = (),
    ) -> None: ...
    def run(self) -> None: ...
    @property
    def trace(self) -> StreamTrace | None: ...
    def timeline(self) -> list[StreamPiece]: ...
    def explain(self) -> str: ...

class StreamPiece(NamedTuple):
    step: int
    part: int
    first_rank: int
    ranks: int
    begin_s: float
    end_s: float
    kind: str

class StreamTrace(NamedTuple):
    seconds_total: float
    seconds_host: float
    seconds_pes: float
    seconds_setup: float
    pieces: int
    rank_groups: int
    parts: int
    source: str

class Symbol(Buffer):
    def __init__(self, core_set: _core.Set, name: str, types: DebugTypes) -> None: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def size(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    def write(
        self, values: ArrayLike, offset: int = 0, *, dtype: DTypeLike | None = None
    ) -> None: ...
    def read(self, dtype: DTypeLike, count: int | None = None, offset: int = 0) -> Array: ...

TECHNIQUES: dict

TYPES: dict

@dataclass(frozen=True)
class Trace(Shown, TraceFields):
    @property
    def host_seconds(self) -> float: ...
    @property
    def bus_bytes(self) -> int: ...

__version__: str

def allocate(
    pes: int | None = None, *, ranks: int | None = None, profile: str | None = None
) -> PeSet: ...
def displacements(counts: ArrayLike, dtype: DTypeLike, shape: Sequence[int] = ()) -> Array: ...
def plan(
    collective: PlannedName,
    shape: Sequence[int],
    mask: str,
    *,
    bytes: int,
    src: int = 0,
    dst: int = 0,
    dtype: DTypeLike = np.uint8,
    op: AnyOp | None = "sum",
    expand: bool = False,
    **options: Unpack[Options],
) -> Plan: ...
def recorder(
    *, wait_s: float | None = None, signal: int | None = None, file: IO[str] | int = STDERR
) -> Records: ...
