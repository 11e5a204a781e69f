CONSTANTS: list

class Constant(NamedTuple):
    value: float
    unit: str
    source: str

    @property
    def kind(self) -> str: ...

class ConstantRow(NamedTuple):
    name: str
    unit: str
    meaning: str

@dataclass(frozen=True)
class HostsPrediction(Shown):
    machine: str
    technique: str
    isa: str
    threads: int
    coherence: str
    hosts: int
    seconds: float
    parts: tuple[Part, ...]
    phases: dict[str, float]
    source: str = SOURCE

    @property
    def exchange(self) -> Part: ...
    @property
    def network_share(self) -> float: ...

KINDS: tuple

LINE_COSTS: list

LINK_CONSTANTS: list

LINK_LEVELS: tuple

class Link(NamedTuple):
    bytes_per_cycle: Constant
    clock_mhz: Constant
    latency_ns: Constant
    topology: str
    topology_source: str

    @property
    def gb_s(self) -> float: ...

@dataclass(frozen=True)
class Machine:
    name: str
    title: str
    constants: Mapping[str, Constant]
    inherits: str | None = None
    links: Mapping[str, Link] = field(default_factory=dict)

    @property
    def isas(self) -> list[str]: ...
    @property
    def pes(self) -> int: ...
    def launch_us(self, pes: int) -> float: ...
    def load_us(self, pes: int) -> float: ...
    @cached_property
    def numbers(self) -> list[float]: ...
    @property
    def places(self) -> dict[str, int]: ...
    def with_values(
        self, values: Mapping[str, float], source: str = "assumed: changed by the caller"
    ) -> Machine: ...
    def inheritance(self) -> dict[str, Constant]: ...
    def to_toml(self) -> str: ...

NETWORK_PHASES: dict

PHASES: dict

@dataclass(frozen=True)
class Prediction(Shown):
    machine: str
    technique: str
    isa: str
    threads: int
    coherence: str
    seconds: float
    interval: tuple[float, float] | None
    phases: dict[str, float]
    source: str = SOURCE

    @property
    def pe_seconds(self) -> float: ...
    @property
    def host_seconds(self) -> float: ...

TOPOLOGIES: tuple

def load_machine(name: str | Machine) -> Machine: ...
def machine_names() -> list[str]: ...
def predict(
    collective: CollectiveName,
    shape: Sequence[int],
    mask: str,
    *,
    bytes: int,
    src: int = 0,
    dst: int | None = None,
    dtype: DTypeLike = np.int32,
    op: OpName | None = "sum",
    machine: str | Machine = DEFAULT_MACHINE,
    **options: Unpack[Options],
) -> Prediction: ...
def predict_hosts(
    collective: CollectiveName,
    hosts: int,
    shape: Sequence[int],
    mask: str,
    *,
    bytes: int,
    dtype: DTypeLike = np.int32,
    op: OpName | None = "sum",
    machine: str | Machine = DEFAULT_MACHINE,
    **options: Unpack[Options],
) -> HostsPrediction: ...
def use_machine(machine: str | Machine | None) -> None: ...
