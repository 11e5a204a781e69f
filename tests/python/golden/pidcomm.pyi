class ArgumentError(Error, ValueError):

    def __init__(self, message: str, status: str='ERR_ARGUMENT') -> None:
        ...

class ArrayCollectives:

    def __init__(self, cube: Cube) -> None:
        ...

    def alltoall(self, x: ArrayInput, mask: str, *, base_offset: int=0, out: ArrayOutput | None=None, **options: Unpack[Options]) -> Array:
        ...

    def reduce_scatter(self, x: ArrayInput, mask: str, *, op: str='sum', base_offset: int=0, out: ArrayOutput | None=None, **options: Unpack[Options]) -> Array:
        ...

    def allreduce(self, x: ArrayInput, mask: str, *, op: str='sum', base_offset: int=0, out: ArrayOutput | None=None, **options: Unpack[Options]) -> Array:
        ...

    def allgather(self, x: ArrayInput, mask: str, *, base_offset: int=0, out: ArrayOutput | None=None, **options: Unpack[Options]) -> Array:
        ...

    def scatter(self, x: ArrayInput, mask: str, *, base_offset: int=0, out: ArrayOutput | None=None, **options: Unpack[Options]) -> Array:
        ...

    def gather(self, x: ArrayInput, mask: str, *, base_offset: int=0, out: ArrayOutput | None=None, **options: Unpack[Options]) -> Array:
        ...

    def reduce(self, x: ArrayInput, mask: str, *, op: str='sum', base_offset: int=0, out: ArrayOutput | None=None, **options: Unpack[Options]) -> Array:
        ...

    def broadcast(self, x: ArrayInput, mask: str, *, base_offset: int=0, out: ArrayOutput | None=None, **options: Unpack[Options]) -> Array:
        ...

COHERENCES: dict

COLLECTIVES: dict

COPY_ORDERS: dict

DEFAULT_ISA: str

class Error(RuntimeError):

    def __init__(self, message: str, status: str='ERR_INTERNAL') -> None:
        ...

class Groups(NamedTuple):
    groups: int
    group_pes: int

class Hypercube:

    def __init__(self, pe_set: Owner, core_set: _core.Set, requests: WeakSet[Request[Any]], lengths: tuple[int, ...]) -> None:
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        ...

    @property
    def pes(self) -> int:
        ...

    @property
    def arrays(self) -> ArrayCollectives:
        ...

    @property
    def pe_set(self) -> Owner:
        ...

    def coords(self, pe: int) -> tuple[int, ...]:
        ...

    def group_of(self, pe: int, mask: str) -> int:
        ...

    def member_of(self, pe: int, mask: str) -> int:
        ...

    def groups(self, mask: str) -> Groups:
        ...

    def write(self, x: ArrayInput, offset: int=0, **options: Unpack[Options]) -> Trace:
        ...

    def read(self, count: int, dtype: DTypeLike, offset: int=0, *, out: ArrayOutput | None=None, **options: Unpack[Options]) -> Array:
        ...

    @overload
    def alltoall(self, mask: str, *, wait: Literal[True]=True, **arguments: Unpack[Moved]) -> Trace:
        ...

    @overload
    def alltoall(self, mask: str, *, wait: Literal[False], **arguments: Unpack[Moved]) -> Request[Trace]:
        ...

    @overload
    def alltoall(self, mask: str, *, wait: bool, **arguments: Unpack[Moved]) -> Trace | Request[Trace]:
        ...

    def alltoall(self, mask: str, *, bytes: int, src: int=0, dst: int=0, dtype: DTypeLike=np.uint8, wait: bool=True, **options: Unpack[Options]) -> Trace | Request[Trace]:
        ...

    @overload
    def reduce_scatter(self, mask: str, *, wait: Literal[True]=True, **arguments: Unpack[Reduced]) -> Trace:
        ...

    @overload
    def reduce_scatter(self, mask: str, *, wait: Literal[False], **arguments: Unpack[Reduced]) -> Request[Trace]:
        ...

    @overload
    def reduce_scatter(self, mask: str, *, wait: bool, **arguments: Unpack[Reduced]) -> Trace | Request[Trace]:
        ...

    def reduce_scatter(self, mask: str, *, bytes: int, src: int=0, dst: int=0, dtype: DTypeLike, op: str='sum', wait: bool=True, **options: Unpack[Options]) -> Trace | Request[Trace]:
        ...

    @overload
    def allreduce(self, mask: str, *, wait: Literal[True]=True, **arguments: Unpack[Reduced]) -> Trace:
        ...

    @overload
    def allreduce(self, mask: str, *, wait: Literal[False], **arguments: Unpack[Reduced]) -> Request[Trace]:
        ...

    @overload
    def allreduce(self, mask: str, *, wait: bool, **arguments: Unpack[Reduced]) -> Trace | Request[Trace]:
        ...

    def allreduce(self, mask: str, *, bytes: int, src: int=0, dst: int=0, dtype: DTypeLike, op: str='sum', wait: bool=True, **options: Unpack[Options]) -> Trace | Request[Trace]:
        ...

    @overload
    def allgather(self, mask: str, *, wait: Literal[True]=True, **arguments: Unpack[Moved]) -> Trace:
        ...

    @overload
    def allgather(self, mask: str, *, wait: Literal[False], **arguments: Unpack[Moved]) -> Request[Trace]:
        ...

    @overload
    def allgather(self, mask: str, *, wait: bool, **arguments: Unpack[Moved]) -> Trace | Request[Trace]:
        ...

    def allgather(self, mask: str, *, bytes: int, src: int=0, dst: int=0, dtype: DTypeLike=np.uint8, wait: bool=True, **options: Unpack[Options]) -> Trace | Request[Trace]:
        ...

    @overload
    def scatter(self, mask: str, *, wait: Literal[True]=True, **arguments: Unpack[FromHost]) -> Trace:
        ...

    @overload
    def scatter(self, mask: str, *, wait: Literal[False], **arguments: Unpack[FromHost]) -> Request[Trace]:
        ...

    @overload
    def scatter(self, mask: str, *, wait: bool, **arguments: Unpack[FromHost]) -> Trace | Request[Trace]:
        ...

    def scatter(self, mask: str, *, host: ArrayInput, bytes: int | None=None, dst: int=0, wait: bool=True, **options: Unpack[Options]) -> Trace | Request[Trace]:
        ...

    @overload
    def gather(self, mask: str, *, wait: Literal[True]=True, **arguments: Unpack[ToHost]) -> Array:
        ...

    @overload
    def gather(self, mask: str, *, wait: Literal[False], **arguments: Unpack[ToHost]) -> Request[Array]:
        ...

    @overload
    def gather(self, mask: str, *, wait: bool, **arguments: Unpack[ToHost]) -> Array | Request[Array]:
        ...

    def gather(self, mask: str, *, bytes: int, src: int=0, dtype: DTypeLike=np.uint8, out: ArrayOutput | None=None, wait: bool=True, **options: Unpack[Options]) -> Array | Request[Array]:
        ...

    @overload
    def reduce(self, mask: str, *, wait: Literal[True]=True, **arguments: Unpack[ReducedToHost]) -> Array:
        ...

    @overload
    def reduce(self, mask: str, *, wait: Literal[False], **arguments: Unpack[ReducedToHost]) -> Request[Array]:
        ...

    @overload
    def reduce(self, mask: str, *, wait: bool, **arguments: Unpack[ReducedToHost]) -> Array | Request[Array]:
        ...

    def reduce(self, mask: str, *, bytes: int, src: int=0, dtype: DTypeLike, op: str='sum', out: ArrayOutput | None=None, wait: bool=True, **options: Unpack[Options]) -> Array | Request[Array]:
        ...

    @overload
    def broadcast(self, mask: str, *, wait: Literal[True]=True, **arguments: Unpack[FromHost]) -> Trace:
        ...

    @overload
    def broadcast(self, mask: str, *, wait: Literal[False], **arguments: Unpack[FromHost]) -> Request[Trace]:
        ...

    @overload
    def broadcast(self, mask: str, *, wait: bool, **arguments: Unpack[FromHost]) -> Trace | Request[Trace]:
        ...

    def broadcast(self, mask: str, *, host: ArrayInput, bytes: int | None=None, dst: int=0, wait: bool=True, **options: Unpack[Options]) -> Trace | Request[Trace]:
        ...

    def plan(self, collective: str, mask: str, *, bytes: int, **arguments: Any) -> dict[str, Any]:
        ...

    def stream_limit(self, bytes_read: int, bytes_written: int, *, src: int=0, dst: int=0, copy_order: str='sequential', **options: Unpack[Options]) -> tuple[float, int]:
        ...

    def push_xfer(self, rows: NDArray[np.uint8], offset: int=0, *, to_pes: bool) -> float:
        ...

    def carry_out(self, name: str, mask: str, **arguments: Unpack[AnyArguments]) -> tuple[Trace, Array | None]:
        ...

ISAS: dict

MRAM_BYTES: int

OPS: dict

class Options(TypedDict, total=False):
    technique: str | None
    isa: str | None
    threads: int | None
    coherence: str | None
    scratch: int | None

class OutOfMemoryError(Error, MemoryError):

    def __init__(self, message: str, status: str='ERR_MEMORY') -> None:
        ...

PES_PER_RANK: int

class PeSet:

    def __init__(self, core: _core.Set) -> None:
        ...

    @property
    def pes(self) -> int:
        ...

    @property
    def ranks(self) -> int:
        ...

    @property
    def is_freed(self) -> bool:
        ...

    def hypercube(self, *lengths: int) -> Hypercube:
        ...

    def load(self, program: PathText | Sequence[PathText], *, tasklets: int | None=None, stack_bytes: int | None=None, options: Sequence[str]=()) -> None:
        ...

    def launch(self, *, wait: bool=True) -> None:
        ...

    def wait(self) -> None:
        ...

    def symbol(self, name: str) -> Symbol:
        ...

    def logs(self) -> list[str]:
        ...

    def log(self, pe: int) -> str:
        ...

    @property
    def dpu_set(self) -> bytes:
        ...

    def free(self) -> None:
        ...

class Request(Generic[T]):

    def __init__(self, name: str, pending: _core.Pending, finish: Callable[[Trace], T]) -> None:
        ...

    def wait(self) -> T:
        ...

    def test(self) -> bool:
        ...

STATUSES: dict

class Symbol:

    def __init__(self, core_set: _core.Set, name: str) -> None:
        ...

    @property
    def name(self) -> str:
        ...

    @property
    def address(self) -> int:
        ...

    @property
    def size_bytes(self) -> int:
        ...

    def write(self, values: ArrayLike, offset: int=0, *, dtype: DTypeLike | None=None) -> None:
        ...

    def read(self, dtype: DTypeLike, count: int | None=None, offset: int=0) -> Array:
        ...

TECHNIQUES: dict

TYPES: dict

@dataclass(frozen=True)
class Trace:
    technique: str
    isa: str
    threads: int
    coherence: str
    seconds_total: float
    seconds_plan: float
    seconds_acquire: float
    seconds_pass: float
    seconds_from_pes: float
    seconds_host: float
    seconds_to_pes: float
    seconds_load: float
    seconds_reorder: float
    seconds_launch: float
    pe_loads: int
    pe_launches: int
    pe_cycles: int
    pe_bytes: int
    mram_bytes_read: int
    mram_bytes_written: int
    host_bytes_read: int
    host_bytes_written: int
    bytes_staged: int
    lines_loaded: int
    lines_stored: int
    lines_flushed: int
    lines_prefetched: int
    max_loads_of_a_line: int
    max_stores_of_a_line: int
    distinct_lines_loaded: int
    distinct_lines_stored: int
    lines_outside: int
    loads_unflushed: int

    @property
    def host_seconds(self) -> float:
        ...

    @property
    def pe_seconds(self) -> float:
        ...

    @property
    def bus_bytes(self) -> int:
        ...

__version__: str

def allocate(pes: int | None=None, *, ranks: int | None=None, profile: str | None=None) -> PeSet:
    ...

def plan(collective: str, shape: Sequence[int], mask: str, *, bytes: int, src: int=0, dst: int=0, dtype: DTypeLike=np.uint8, op: str | None='sum', expand: bool=False, **options: Unpack[Options]) -> dict[str, Any]:
    ...

