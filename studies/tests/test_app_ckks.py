"""Homomorphic multiplication: every element against Python integers, and decryption against the
plain product.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from test_app_ntt import by_flint
from test_pictures import assert_legible

import pidcomm
from pidcomm import ArgumentError
from pidcomm.arguments import Array
from pidcomm.model import load_machine
from pidcomm_studies import apps
from pidcomm_studies.apps import _apps
from pidcomm_studies.apps.ckks import Ckks
from pidcomm_studies.apps.ckks.scheme import Parameters
from pidcomm_studies.apps.stage import Stage
from pidcomm_studies.papers.figure import Request, series_of
from pidcomm_studies.papers.scalability import ckks as figures
from pidcomm_studies.papers.scalability import server_cpu
from pidcomm_studies.pictures import points as of_papers

Limbs = list[list[int]]


class Plain:
    """The multiplication with Python integers on coefficients; products of polynomials by FLINT.

    It shares no code with the kernels and with apps/ckks/cpu.py. A polynomial has a list of
    integers for each modulus.
    """

    def __init__(self, problem: Ckks) -> None:
        self.problem, self.it = problem, problem.parameters

    def coefficients(self, transforms: Array, first: int = 0) -> Limbs:
        its, tables = slice(first, first + len(transforms)), self.problem.scheme.tables
        limbs: Limbs = _apps.ntt_inverse(
            transforms, tables.inverse[its].copy(), tables.scales[its].copy()
        ).tolist()
        return limbs

    def product(self, a: Limbs, b: Limbs) -> Limbs:
        its = zip(a, b, self.it.all, strict=False)
        return [by_flint(np.array(x, object), np.array(y, object), q) for x, y, q in its]

    def sum(self, a: Limbs, b: Limbs) -> Limbs:
        return [
            [(x + y) % q for x, y in zip(*its, strict=True)]
            for *its, q in zip(a, b, self.it.all, strict=False)
        ]

    def converted(self, a: Limbs, sources: tuple[int, ...], targets: tuple[int, ...]) -> Limbs:
        """Return the sum of [a_i (Q/q_i)^-1]_(q_i) Q/q_i modulo each target, Q being the product
        of the sources.
        """
        whole = prod(sources)
        sums = [
            sum(
                x * pow(whole // q, -1, q) % q * (whole // q)
                for x, q in zip(column, sources, strict=True)
            )
            for column in zip(*a, strict=True)
        ]
        return [[value % t for value in sums] for t in targets]

    def divided(
        self, a: Limbs, divisors: tuple[int, ...], moduli: tuple[int, ...], half: int = 0
    ) -> Limbs:
        """Return (a + half - [a + half]) / D for the product D of the divisors, to which the
        last limbs belong.
        """
        a = [
            [(x + half) % q for x in limb] for limb, q in zip(a, (*moduli, *divisors), strict=True)
        ]
        rest = self.converted(a[len(moduli) :], divisors, moduli)
        return [
            [(x - y) * pow(prod(divisors), -1, q) % q for x, y in zip(*its, strict=True)]
            for *its, q in zip(a, rest, moduli, strict=False)
        ]

    def multiplied(self) -> list[Limbs]:
        parameters = self.it
        x0, x1, y0, y1 = (self.coefficients(part) for part in self.problem.inputs)
        d = [
            self.product(x0, y0),
            self.sum(self.product(x0, y1), self.product(x1, y0)),
            self.product(x1, y1),
        ]
        zero = [[0] * parameters.size for _ in parameters.all]
        sums = [zero, zero]
        for digit, its in enumerate(parameters.digits):
            own = d[2][its.start : its.stop]
            raised = self.converted(own, parameters.moduli[its.start : its.stop], parameters.all)
            raised[its.start : its.stop] = own
            keys = [self.coefficients(key) for key in self.problem.scheme.key[digit]]
            sums = [
                self.sum(a, self.product(raised, key)) for a, key in zip(sums, keys, strict=True)
            ]
        switched = [self.divided(a, parameters.extension, parameters.moduli) for a in sums]
        added = [self.sum(a, b) for a, b in zip(d[:2], switched, strict=True)]
        return [
            self.divided(
                a, parameters.moduli[-1:], parameters.moduli[:-1], parameters.moduli[-1] // 2
            )
            for a in added
        ]


def assert_right(problem: Ckks, shape: tuple[int, ...], *techniques: str) -> Array:
    """Check PEs against the CPU reference, which another test checks; return the product."""
    for run in apps.compare(problem, shape=shape, techniques=techniques or ["tile"], iters=1):
        np.testing.assert_array_equal(run.result, problem.reference(), err_msg=run.technique)
        assert run.wrong == 0
    return run.result


@pytest.mark.parametrize(("level", "dnum"), [(1, 1), (2, 3), (4, 2)])
def test_the_integer_polynomials_are_equal(level: int, dnum: int) -> None:
    """Of PEs, the CPU reference and Python integers; with digits that divide the moduli and
    digits that do not.
    """
    problem = Ckks.make(size=256, level=level, dnum=dnum)
    result = assert_right(problem, (4, 2, 1, 1))
    plain = Plain(problem)
    for part, expected in zip(np.split(result, 2), plain.multiplied(), strict=True):
        assert plain.coefficients(part) == expected


@pytest.mark.parametrize(
    ("size", "level", "dnum", "steps", "shape"),
    [
        (1024, 2, 1, "2", (32, 1, 1, 1)),
        (1024, 2, 3, "3", (8, 8, 1, 1)),
        (1024, 5, 3, "3", (8, 4, 1, 1)),
        (1024, 23, 2, "4", (4, 4, 2, 1)),
        (256, 55, 2, "2", (8, 1, 1, 1)),  # as many sources as a conversion allows
    ],
)
def test_shapes_levels_and_digits_are_right(
    size: int, level: int, dnum: int, steps: str, shape: tuple[int, ...]
) -> None:
    problem = Ckks.make(size=size, level=level, dnum=dnum, steps=steps)
    assert problem.error(assert_right(problem, shape)) < problem.parameters.error_bound()


def test_every_technique_is_right() -> None:
    """The pr techniques replace the program between its launches."""
    assert_right(
        Ckks.make(size=256, level=1, dnum=2), (2, 4, 1, 1), "conventional", "pr+im+cm", "tile"
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_decryption_gives_the_product_of_the_messages(seed: int) -> None:
    """Within the bound of the scheme; a wrong product is far outside."""
    problem = Ckks.make(size=1024, level=3, dnum=2, generate=f"uniform:seed={seed}")
    product = problem.reference()
    bound = problem.parameters.error_bound()
    assert bound < 1e-6
    assert problem.error(product) < bound
    product[1, 5] ^= 1 << 40
    product[0, 5] ^= 1 << 40
    assert problem.error(product) > bound


def test_messages_survive_encoding_and_encryption() -> None:
    problem = Ckks.make(size=512, level=1, dnum=1)
    scheme = problem.scheme
    for message, parts in zip(
        problem.messages, (problem.inputs[:2], problem.inputs[2:]), strict=True
    ):
        encoded = scheme.encode(message)
        np.testing.assert_allclose(
            scheme.decode(encoded.astype(float), 2.0**50), message, atol=1e-12
        )
        np.testing.assert_allclose(
            scheme.decode(scheme.decrypt((parts[0], parts[1])), 2.0**50), message, atol=1e-9
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"level": 56, "dnum": 2},
            "level 56 and dnum 2 make a digit or an extension of 29 moduli; the sums of a base"
            " conversion allow at most 28: use a dnum of at least 3",
        ),
        (
            {"level": 0},
            "level 0: a multiplication drops a modulus, so the level must be at least 1",
        ),
        ({"dnum": 0}, "dnum 0 must be from 1 to 3"),
        ({"dnum": 4}, "dnum 4 must be from 1 to 3"),
        (
            {"scale_bits": 81},
            r"the noise budget is exhausted: products have 163 bits \(scale 2\^81\), and the 3",
        ),
        ({"bits": 55}, r"bits \(55\) must be between"),
        ({"size": 128}, r"size \(128\) must be between 256"),
        ({"level": 64}, r"level \(64\) must be between"),
        ({"steps": "1", "size": 4096}, "step 4096 of 4096"),
        ({"tasklets": 0}, r"tasklets \(0\)"),
    ],
)
def test_parameters_that_break_a_rule_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Ckks.make(**{"size": 256, "level": 2, **options})


@pytest.mark.parametrize(
    ("moduli", "extension", "message"),
    [
        ((0, 1, 1), (3,), "moduli must be distinct"),
        ((0, 1, 2), (2, 3), "moduli must be distinct"),
        ((0, 1, 2), (), "the 0 moduli of the extension have 0.0 bits; they need at least"),
    ],
)
def test_moduli_that_break_a_rule_are_refused(
    moduli: tuple[int, ...], extension: tuple[int, ...], message: str
) -> None:
    primes = Parameters.of(256, 3, 4, 54, 50).all
    with pytest.raises(ArgumentError, match=message):
        Parameters(
            256, tuple(primes[i] for i in moduli), tuple(primes[i] for i in extension), 3, 50
        )


@pytest.mark.parametrize(
    ("level", "dnum", "steps", "shape"),
    [
        (1, 1, "2", (4, 1, 1, 2)),
        (2, 3, "2", (16, 1, 1, 2)),
        (4, 2, "3", (4, 4, 1, 4)),
        (7, 3, "2", (16, 1, 1, 8)),
    ],
)
def test_limbs_over_slices_are_right(
    level: int, dnum: int, steps: str, shape: tuple[int, ...]
) -> None:
    """Slices that divide the limbs of the digits and the extension, and slices that repeat some."""
    problem = Ckks.make(size=256, level=level, dnum=dnum, steps=steps)
    result = assert_right(problem, shape, "conventional", "tile")
    plain = Plain(problem)
    for part, expected in zip(np.split(result, 2), plain.multiplied(), strict=True):
        assert plain.coefficients(part) == expected


def test_a_base_conversion_over_slices_exchanges_its_limbs_twice() -> None:
    problem = Ckks.make(size=256, level=2, dnum=3, steps="2")
    clocks = problem.rehearsed((8, 1, 1, 2))
    # Of a slice: 3 limbs with 1 of each digit, 1 of the extension; 3 others for each digit.
    limb_bytes = 8 * 256 // 8
    limbs = [3, *3 * [3], *2 * [1, 3], *2 * [1, 3]]
    exchanges = clocks["base conversion"].exchanges
    assert sorted(exchanges) == sorted(("0001", count * limb_bytes) for count in limbs)
    assert "base conversion" not in {
        name for name, clock in problem.rehearsed((8, 1, 1, 1)).items() if clock.exchanges
    }


def test_the_placement_with_the_lowest_price_is_chosen() -> None:
    problem = Ckks.make(size=1024, level=5, dnum=3)
    options = [(8, 8 // slices, 1, slices) for slices in (1, 2, 4, 8)]
    assert problem.shape_of(64) == min(options, key=problem.price)
    assert problem.shape_of(512) == (8, 8, 1, 8)
    assert Ckks.make(size=1024, level=15, dnum=3, steps="16x16x4").shape_of(1024) == (16, 4, 1, 16)


def test_shapes_with_too_many_slices_are_refused() -> None:
    problem = Ckks.make(size=1024, level=5, dnum=3)
    for slices in (3, 16):
        with pytest.raises(
            ArgumentError,
            match=f"shape 8x8x1x{slices} has {slices} slices; the 8 moduli and the first axis allow"
            " a power of two up to 8",
        ):
            apps.run(problem, shape=(8, 8, 1, slices))
    with pytest.raises(
        ArgumentError,
        match="no shape has 1024 PEs: the steps 8x8x16 allow 8x8x1 PEs per limb, and 8 moduli 8"
        r" slices .* at most 512 PEs: use .* such as --level 5 --steps 8x8x4x4$",
    ):
        apps.run(problem, pes=1024)
    named = Ckks.make(size=1024, level=5, dnum=3, steps="8x8x4x4")
    assert named.shape_of(1024) == (8, 4, 4, 8)


def test_figure_16_has_every_primitive(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a small multiplication."""
    for name, value in (
        ("SIZE", 256),
        ("LEVEL", 2),
        ("PLACEMENTS", {"whole": ("3", (4, 4, 1, 1)), "spread": ("2", (8, 1, 1, 2))}),
        ("TECHNIQUES", ("conventional", "tile")),
    ):
        monkeypatch.setattr(figures, name, value)
    figures._forget()
    figure = figures.FIGURE_16
    points = figure.points(Request(iters=1))
    assert_legible(of_papers.draw(figure, points))
    primitives = {
        "multiply",
        "copy",
        "iNTT",
        "base conversion",
        "NTT",
        "key product",
        "scale",
        "add",
    }
    assert {point.x for point in points if point.panel == "tile"} == primitives | {"all"}
    for source in ("measured", "modelled"):
        assert set(series_of(points, "CPU", "CPU", source)) == primitives - {"copy"}
    assert not any(point.wrong for point in points)
    between = {
        point.x: point.value
        for point in points
        if (point.panel, point.series, point.source) == ("tile", "between PEs", "modelled")
    }
    assert {name for name, value in between.items() if value > 0} == {"NTT", "iNTT", "all"}
    traffic = {name: series_of(points, "traffic", name) for name in ("whole", "spread")}
    assert set(traffic["whole"]) == {"NTT", "iNTT"}
    assert set(traffic["spread"]) == {"NTT", "iNTT", "base conversion"}
    assert len(series_of(points, "price", "all")) == 2
    statements = list(figure.statements(Request(), points))
    assert len(statements) == 2 * 4
    for statement in statements:
        assert statement.agrees is not None
        assert statement.cause
    figures._forget()


def test_the_modelled_cpu_does_as_many_transforms_as_the_pes() -> None:
    problem = Ckks.make(size=256, level=4, dnum=2)
    work = problem.multiplication((4, 4, 1, 1))
    with (
        pidcomm.allocate(pes=16) as pe_set,
        Stage(pe_set, (4, 4, 1, 1), work.placement(), {}) as stage,
    ):
        work.place(stage)
        problem.carried_out(stage, work)
    cpu = figures.cpu_times(problem.parameters, load_machine("upmem-2560"))
    assert set(cpu) == set(work.clocks) - {"copy"}
    limbs = {
        name: sum(size for _, size in clock.exchanges) / 2 / work.limb_bytes
        for name, clock in work.clocks.items()
    }
    for name in ("NTT", "iNTT"):
        expected = server_cpu.transform_time(int(limbs[name]), 256, 64, load_machine("upmem-2560"))
        assert cpu[name] == pytest.approx(expected)
