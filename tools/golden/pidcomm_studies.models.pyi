@dataclass(frozen=True, repr=False)
class Advice(Estimate):
    alike: list[Way]
    reason: str

@dataclass(frozen=True)
class Estimate(Shown):
    shape: tuple[int, ...]
    mask: str
    prediction: Prediction
    scratch_bytes: int
    replaces_program: bool

LINKS: str

@dataclass(frozen=True)
class LinksPrediction(Shown):
    machine: str
    host_seconds: float
    link_seconds: dict[str, float]
    sent_bytes: dict[str, float]
    source: str = SOURCE

    @property
    def seconds(self) -> float: ...

class Way(NamedTuple):
    shape: tuple[int, ...]
    mask: str
    technique: str

def advise(
    collective: CollectiveName,
    *,
    pes: int,
    bytes: int,
    group: int | None = None,
    dtype: DTypeLike = np.int32,
    op: OpName | None = "sum",
    machine: str | Machine = DEFAULT_MACHINE,
    top: int = 10,
    **options: Unpack[Options],
) -> list[Advice]: ...
def compare(
    collective: CollectiveName,
    shape: Sequence[int],
    mask: str,
    *,
    bytes: int,
    dtype: DTypeLike = np.int32,
    op: OpName | None = "sum",
    machine: str | Machine = DEFAULT_MACHINE,
    **options: Unpack[Options],
) -> list[Estimate]: ...
def influences(
    collective: CollectiveName,
    shape: Sequence[int],
    mask: str,
    *,
    bytes: int,
    machine: str | Machine = DEFAULT_MACHINE,
    **arguments: Any,
) -> dict[str, float]: ...
def predict_links(
    collective: CollectiveName,
    shape: Sequence[int],
    mask: str,
    *,
    bytes: int,
    dtype: DTypeLike = np.int32,
    op: OpName | None = "sum",
    machine: str | Machine,
    is_fed_by_pes: bool = False,
) -> LinksPrediction: ...
