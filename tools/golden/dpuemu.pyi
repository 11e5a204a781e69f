class ArgumentError(Error, ValueError): ...
class Error(RuntimeError): ...

@dataclass(frozen=True)
class LaunchReport:
    pes: int
    faulted_pes: int
    dma_reads: int
    dma_read_bytes: int
    dma_writes: int
    dma_write_bytes: int
    masked_addresses: int
    masked_sizes: int
    direct_pages: int
    waiting_tasklets: int
    instructions: int
    cycles_max: float
    cycles_sum: float
    cycles_per_second: float
    host_seconds: float
    fault: str = ""

    @property
    def modelled_seconds(self) -> float: ...
    @property
    def modelled_interval(self) -> tuple[float, float]: ...

@dataclass(frozen=True)
class Machine:
    ranks: int
    channels: int
    ranks_per_channel: int
    threads: int
    hugepages: bool
    flush: Flush
    strict: bool
    patience_seconds: int
    chip: str

__version__: str

def machine(
    *,
    ranks: int | None = None,
    channels: int | None = None,
    ranks_per_channel: int | None = None,
    threads: int | None = None,
    hugepages: bool | None = None,
    flush: Flush | None = None,
    strict: bool | None = None,
    patience_seconds: int | None = None,
    chip: str | None = None,
    disabled: Iterable[tuple[int, int, int]] | None = None,
) -> Machine: ...
def report(pes: DpuSet) -> LaunchReport: ...
def resident_bytes() -> int: ...
def set_transfer(*, threads: int | None = None, flush: Flush | None = None) -> None: ...
