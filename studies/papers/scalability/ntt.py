"""Figures 12 to 15 of Scalability limitations of processing-in-memory using real system evaluations
(SIGMETRICS 2024).

The paper prints few numbers; `Figure.statements` has these. It prints no width of the moduli for
these figures, so all values exist for both widths of words on PEs. Kernels run on dpuemu, so their
times are modelled. Statements are judged with the paper's way to exchange data, `conventional`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, product
from math import inf, prod
from typing import NamedTuple

from pidcomm.model import load_machine
from pidcomm_studies.apps.ntt import Ntt
from pidcomm_studies.apps.ntt.field import WORDS
from pidcomm_studies.papers.figure import (
    HERE,
    MIXED,
    MODELLED,
    Figure,
    Panel,
    Point,
    Request,
    Statement,
    series_of,
)
from pidcomm_studies.papers.scalability.ntt_clocks import (
    COMPLETE,
    MACHINE,
    TOTAL,
    Clocks,
    clocks,
    modelled,
)
from pidcomm_studies.papers.scalability.ntt_factor import (
    factor_of_gain,
    faster,
    times_of,
    transfers,
)

PAPER = (
    "G. Jonatan et al., Scalability Limitations of Processing-in-Memory using Real System"
    " Evaluations, SIGMETRICS 2024"
)
SIZE, LIMBS = 2**16, 8
WIDTHS = {f"{word.modulus_bits} bits": word for word in reversed(WORDS)}
"""The widths of moduli, both chosen by this project: the widest for each word."""
TECHNIQUES = ("conventional", "pr+im+cm", "tile")
BASE, OWN = TECHNIQUES[0], TECHNIQUES[-1]
BASELINE = "the CPUs of this host: apps/ntt/cpu.cpp"
TIE = 0.01  # of this project: times that differ by at most this part are equal
TOLERANCE = 0.2  # a value agrees with a published one if it differs by at most this part of it

GAIN_OF_KERNELS, GAIN, SHARE_PCT = 63.5, 9.7, 40.3
NEGLIGIBLE_PCT = 5  # of this project: a clock is negligible below this share
DIMENSIONS = {
    "2D, 256 PEs": ("256x256", (256, 1, 1, 1)),
    "3D, 1024 PEs": ("32x32x64", (32, 32, 1, 1)),
    "4D, 2048 PEs": ("16x16x16x16", (16, 16, 8, 1)),
}
STEP_SIZES = ("64x1024", "128x512", "256x256", "512x128", "1024x64")
BALANCED = "256x256"
FEW = 64  # PEs that all step sizes allow
STEP_PANELS = {"step sizes, most PEs": SIZE, f"step sizes, {FEW} PEs": FEW}
"""The most PEs of each panel; a step size also limits them."""
PES = (32, 64, 128, 256, 512, 1024, 2048)


class Case(NamedTuple):
    """A transform on a shape."""

    width: str
    steps: str
    shape: tuple[int, ...]
    limbs: int = LIMBS
    radix: int | None = None

    def problem(self) -> Ntt:
        """Return the transform, with random polynomials."""
        return _problem(self.width, self.limbs, self.steps, self.radix)


@lru_cache(maxsize=1)  # the next case often has the same polynomials
def _problem(width: str, limbs: int, steps: str, radix: int | None) -> Ntt:
    bits = WIDTHS[width].modulus_bits
    return Ntt.make(size=SIZE, limbs=limbs, bits=bits, steps=steps, radix=radix)


_ran: dict[Case, Clocks] = {}  # runs of this process: kernels are the same for all techniques


def of_pes(width: str, pes: int, limbs: int = LIMBS) -> Case:
    group = min(pes, 256)
    return Case(width, BALANCED, (group, 1, 1, pes // group), limbs)


def _of_sizes(width: str, steps: str, most: int) -> Case:
    """Return a case with as many PEs as the smaller step has values, at most `most`.

    Radix 2 fits all steps.
    """
    return Case(width, steps, (min(most, *map(int, steps.split("x"))), 1, 1, 1), 1, 2)


def _here(case: Case, technique: str, request: Request) -> Clocks:
    request.progress.phase(
        f"{case.limbs} limbs of {case.width}, {case.steps} on {prod(case.shape)} PEs, {technique}"
    )
    _ran[case] = measured = clocks(case.problem(), case.shape, technique, request.iters)
    return measured


def _there(case: Case, technique: str, _: Request) -> Clocks:
    problem = case.problem()
    if case not in _ran:
        _ran[case] = clocks(problem, case.shape, OWN, 1)
    return modelled(problem, case.shape, technique, load_machine(MACHINE), _ran[case])


CLOCKS_OF = {MIXED: _here, MODELLED: _there}
"""The function that returns the clocks of a case, by their source."""


def points_of(panel: str, x: float | str, times: Clocks, source: str) -> Iterator[Point]:
    on = HERE if source == MIXED else MACHINE
    for name, seconds in times.named().items():
        yield Point(panel, name, x, 1e3 * seconds, source, on, times.wrong)


def is_near(value: float, published: float) -> bool:
    return abs(value - published) <= TOLERANCE * published


def judged(points: Sequence[Point]) -> Iterator[tuple[str, str]]:
    """Yield each source and width with values."""
    present = {point.source for point in points}
    yield from product((source for source in CLOCKS_OF if source in present), WIDTHS)


def listed(values: Iterable[object]) -> str:
    """Return values as text."""
    return ", ".join(map(str, values))


# ---- figure 13: decompositions of one transform


def _dimensions(technique: str, width: str) -> str:
    return f"dimensions, {technique}, {width}"


def _points13(request: Request, source: str) -> Iterator[Point]:
    for width in WIDTHS:
        for technique, (x, (steps, shape)) in product((BASE, OWN), DIMENSIONS.items()):
            case = Case(width, steps, shape, 1, 2)
            times = CLOCKS_OF[source](case, technique, request)
            yield from points_of(_dimensions(technique, width), x, times, source)
        for (panel, pes), steps in product(STEP_PANELS.items(), STEP_SIZES):
            times = CLOCKS_OF[source](_of_sizes(width, steps, pes), OWN, request)
            yield from points_of(f"{panel}, {width}", steps, times, source)


def _statements13(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    for source, width in judged(points):
        who = f"{source}, {width}"
        parts = {
            technique: {
                x: times_of(points, _dimensions(technique, width), x, source) for x in DIMENSIONS
            }
            for technique in (BASE, OWN)
        }
        paper = parts[BASE]
        yield Statement(
            "with more dimensions, on more PEs, kernels are shorter and the exchange between PEs"
            " is longer",
            f"{who}: "
            + "; ".join(
                f"{technique}: "
                + ", ".join(
                    f"{x}: kernels {part.kernels:.3g} ms, between PEs {part.between:.3g} ms"
                    for x, part in by_x.items()
                )
                for technique, by_x in parts.items()
            ),
            _is_rising([part.between for part in paper.values()])
            and _is_rising([-part.kernels for part in paper.values()]),
            _traffic(width, source, points),
        )
        flat, *others = paper.values()
        least = max(
            (flat.kernels - other.kernels)
            / (other.between + other.others - flat.between - flat.others)
            if other.between + other.others > flat.between + flat.others
            else inf
            for other in others
        )
        yield Statement(
            "2D is the fastest",
            f"{who}: "
            + "; ".join(
                f"{technique}: "
                + ", ".join(f"{x}: {part.total():.3g} ms" for x, part in by_x.items())
                for technique, by_x in parts.items()
            ),
            all(flat.total() < other.total() for other in others),
            f"kernels on {prod(DIMENSIONS[next(iter(DIMENSIONS))][1])} PEs take"
            f" {100 * flat.kernels / flat.total():.0f}% of the time; 2D would be the fastest"
            f" {faster(least, or_more=True)}",
        )
        for panel, most in STEP_PANELS.items():
            yield _of_steps(points, f"{panel}, {width}", most, source, width)
        yield _unequal(points, f"{list(STEP_PANELS)[-1]}, {width}", source, who)


def _unequal(points: Sequence[Point], panel: str, source: str, who: str) -> Statement:
    one, other = (series_of(points, panel, f"kernel {step}", source) for step in (1, 2))
    ratios = {x: max(one[x], other[x]) / min(one[x], other[x]) for x in STEP_SIZES}
    least = min(STEP_SIZES, key=lambda steps: ratios[steps])
    return Statement(
        "different step sizes make the times of the two kernels different",
        f"{who}, on {FEW} PEs: the longer kernel takes "
        + ", ".join(f"{ratio:.2f} times the shorter ({x})" for x, ratio in ratios.items()),
        least == BALANCED,
        f"{least} has the most equal kernels: {one[least]:.3g} and {other[least]:.3g} ms",
    )


def _traffic(width: str, source: str, points: Sequence[Point]) -> str:
    """Return why the exchange of more dimensions is not longer."""
    sizes = {}
    for x, (steps, shape) in DIMENSIONS.items():
        cut = Case(width, steps, shape, 1, 2).problem().cut(shape)
        axes = [axis for axis, mask in enumerate(cut.masks()) if mask is not None]
        sizes[x] = f"{len(axes)} alltoalls of {cut.exchanged_bytes(axes[0])} bytes per PE in {x}"
    last = list(DIMENSIONS)[-1]
    return transfers(points, _dimensions(BASE, width), last, source) + ", ".join(sizes.values())


def _of_steps(points: Sequence[Point], panel: str, most: int, source: str, width: str) -> Statement:
    total = series_of(points, panel, TOTAL, source)
    pes = {steps: prod(_of_sizes(width, steps, most).shape) for steps in STEP_SIZES}
    fastest = min(STEP_SIZES, key=lambda steps: total[steps])
    rival = min((size for size in STEP_SIZES if size != BALANCED), key=lambda size: total[size])
    lead = total[rival] / total[BALANCED] - 1
    is_tie = abs(lead) <= TIE
    kernels = {steps: times_of(points, panel, steps, source).kernels for steps in STEP_SIZES}
    spread = max(kernels.values()) / min(kernels.values()) - 1
    same_pes = len(set(pes.values())) == 1
    return Statement(
        "balanced steps are the fastest",
        f"{source}, {width}: "
        + ", ".join(f"{size} on {pes[size]} PEs: {total[size]:.4g} ms" for size in STEP_SIZES)
        + (
            f"; {rival} and {BALANCED} differ by {100 * abs(lead):.1f}%, a tie (at most"
            f" {TIE:.0%}), which neither confirms nor contradicts"
            if is_tie
            else ""
        ),
        None if is_tie else fastest == BALANCED,
        f"kernels of all step sizes differ by at most {100 * spread:.1f}%, because a PE has "
        + (
            "the same butterflies in all"
            if same_pes
            else f"{max(pes.values()) / min(pes.values()):.2g} times as many butterflies on the"
            " fewest PEs as on the most"
        )
        + (
            ""
            if is_tie
            else f"; {fastest} is {100 * (total[BALANCED] / total[fastest] - 1):.1f}% faster than"
            f" {BALANCED}"
        ),
    )


def _is_rising(values: Sequence[float]) -> bool:
    return all(one < next_one for one, next_one in pairwise(values))


# ---- figure 14: strong scaling


def _scaling(technique: str, width: str) -> str:
    return f"{technique}, {width}"


def _points14(request: Request, source: str) -> Iterator[Point]:
    for technique, width, pes in product(TECHNIQUES, WIDTHS, PES):
        times = CLOCKS_OF[source](of_pes(width, pes), technique, request)
        yield from points_of(_scaling(technique, width), pes, times, source)
        on = HERE if source == MIXED else MACHINE
        yield Point(f"share, {width}", technique, pes, times.share_pct, source, on, times.wrong)


def _statements14(_: Request, points: Sequence[Point]) -> Iterator[Statement]:
    few, many = PES[0], PES[-1]
    for source, width in judged(points):
        parts = {
            technique: [
                times_of(points, _scaling(technique, width), pes, source) for pes in (few, many)
            ]
            for technique in TECHNIQUES
        }
        first, last = parts[BASE]
        who = f"{source}, {width}"
        scaled = first.kernels / last.kernels
        yield Statement(
            f"from {few} to {many} PEs kernels are {GAIN_OF_KERNELS}x faster",
            f"{who}: {scaled:.1f}x",
            is_near(scaled, GAIN_OF_KERNELS),
            f"{many // few}x the PEs; a PE of {many} needs {100 * (many / few / scaled - 1):.0f}%"
            " longer per butterfly",
        )
        factor = factor_of_gain(first, last, GAIN)
        here = transfers(points, _scaling(BASE, width), many, source)
        at_factor = (
            ""
            if factor == inf
            else f", and the exchange would take {last.share_pct(factor):.0f}%"
            f" (published: {SHARE_PCT}%)"
        )
        yield Statement(
            f"from {few} to {many} PEs the total is {GAIN}x faster",
            f"{who}: "
            + ", ".join(
                f"{technique} {one.total() / other.total():.1f}x"
                for technique, (one, other) in parts.items()
            ),
            is_near(first.total() / last.total(), GAIN),
            f"{here}kernels take {100 * last.kernels / last.total():.0f}% of the time at {many}"
            f" PEs; the published gains leave them at most {GAIN} / {GAIN_OF_KERNELS} ="
            f" {100 * GAIN / GAIN_OF_KERNELS:.0f}%. The total would be {GAIN}x faster"
            f" {faster(factor)}{at_factor}",
        )
        yield Statement(
            "for few PEs the exchange between PEs is negligible",
            f"{who}: at {few} PEs {first.share_pct():.1f}% of the time (negligible: below"
            f" {NEGLIGIBLE_PCT}%)",
            first.share_pct() < NEGLIGIBLE_PCT,
            f"{here}it is below {NEGLIGIBLE_PCT}% if kernels take at least"
            f" {first.factor_of_share(NEGLIGIBLE_PCT) ** -1:.2g} times as long",
        )
        factor = last.factor_of_share(SHARE_PCT)
        yield Statement(
            f"at {many} PEs the exchange between PEs takes {SHARE_PCT}% of the time",
            f"{who}: "
            + ", ".join(
                f"{technique} {other.share_pct():.1f}%" for technique, (_, other) in parts.items()
            ),
            is_near(last.share_pct(), SHARE_PCT),
            f"{here}it would be {SHARE_PCT}% {faster(factor)}; {block(width, many)}",
        )


def block(width: str, pes: int, limbs: int = LIMBS) -> str:
    """Return the bytes of the exchange."""
    case = of_pes(width, pes, limbs)
    cut = case.problem().cut(case.shape)
    return (
        f"a PE has {cut.elements} residues of {cut.word.bytes} bytes and exchanges"
        f" {cut.exchanged_bytes(0)} bytes in blocks of {cut.exchanged_bytes(0) // cut.shape[0]}"
    )


NOTE_KERNELS = (
    "Kernels run on dpuemu, so their times are modelled. A step multiplies by no separate twiddles,"
    " because the tables of the next step contain them. The paper prints no absolute times, so its"
    " machine's times cannot be compared, and no width of moduli: both widths are choices of this"
    f" project. Where the paper prints a number, a value agrees if they differ by at most"
    f" {TOLERANCE:.0%}."
)
NOTE = NOTE_KERNELS + (
    " Collectives are measured here, or"
    f" modelled on the machine. `{TOTAL}` has the five clocks of the paper. `{COMPLETE}` adds the"
    " measured layout of rows in host memory and writes of variables, and assumed launches and"
    f" loads of programs; it exists only for runs here. Statements are judged with `{BASE}`."
)
NOTE13 = (
    " The paper extrapolates 3D and 4D, gives no number of PEs for 3D, and neither radixes nor"
    " numbers of PEs for step sizes: 3D on 1,024 PEs, radix 2, and both numbers of PEs per step"
    " size are choices of this project. Times that differ by at most"
    f" {TIE:.0%} are a tie, which is not judged."
)


def figure(
    number: int,
    title: str,
    panels: Sequence[Panel],
    statements: Callable[[Request, Sequence[Point]], Iterable[Statement]],
    points: Callable[[Request, str], Iterable[Point]],
    note: str = "",
    options: tuple[str, ...] = (),
) -> Figure:
    return Figure(
        f"scalability/fig{number}",
        PAPER,
        title,
        panels,
        lambda request: points(request, MODELLED),
        statements,
        lambda request: points(request, MIXED),
        NOTE + note,
        options,
    )


def panels(names: Iterable[str], x: str, detail: str = "") -> list[Panel]:
    return [Panel(name, "ms", x, detail=detail) for name in names]


FIGURE_13 = figure(
    13,
    "decompositions of a transform of 2^16 coefficients",
    panels(
        [
            *(_dimensions(technique, width) for technique, width in product((BASE, OWN), WIDTHS)),
            *(f"{panel}, {width}" for panel, width in product(STEP_PANELS, WIDTHS)),
        ],
        "steps",
    ),
    _statements13,
    _points13,
    NOTE13,
)
FIGURE_14 = figure(
    14,
    "8 transforms of 2^16 coefficients on 32 to 2048 PEs",
    [
        *panels(
            (_scaling(technique, width) for technique, width in product(TECHNIQUES, WIDTHS)), "PEs"
        ),
        *(
            Panel(f"share, {width}", "exchange between PEs in percent of all clocks", "PEs")
            for width in WIDTHS
        ),
    ],
    _statements14,
    _points14,
)
