"""Number-theoretic transforms: sizes, radixes, steps, tasklets; against evaluation, FLINT and
the schoolbook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from polynomials import point_of, product_by_flint, value_at

import dpuemu
import pidcomm
from pidcomm import ArgumentError, Error
from pidcomm.arguments import Array
from pidcomm.errors import FileContentError
from pidcomm_studies import apps
from pidcomm_studies.apps import _apps
from pidcomm_studies.apps.ntt import Ntt, field, steps_of
from pidcomm_studies.apps.ntt.decomposition import RADIXES, Decomposition
from pidcomm_studies.apps.ntt.transforms import Tables
from pidcomm_studies.apps.stage import Stage

TECHNIQUES = ["conventional", "pr+im+cm", "tile"]
WIDTHS = [word.modulus_bits for word in field.WORDS]


def schoolbook(a: Array, b: Array, q: int) -> list[int]:
    """Multiply two polynomials modulo x^N + 1 and q, term by term."""
    size = len(a)
    sums = [0] * size
    for i, left in enumerate(map(int, a)):
        for j, right in enumerate(map(int, b)):
            sums[(i + j) % size] += left * right if i + j < size else -left * right
    return [value % q for value in sums]


def by_flint(a: Array, b: Array, q: int) -> list[int]:
    """Multiply two polynomials modulo x^N + 1 and q with FLINT."""
    pytest.importorskip("flint")
    return product_by_flint(a.tolist(), b.tolist(), q)


def assert_right(problem: Ntt, shape: tuple[int, ...], *techniques: str) -> Array:
    """Check PEs against the CPU reference, which other tests check; return the result."""
    for run in apps.compare(problem, shape=shape, techniques=techniques or ["tile"], iters=1):
        np.testing.assert_array_equal(run.result, problem.reference(), err_msg=run.technique)
        assert run.wrong == 0
    return run.result


# ---- the CPU reference against independent definitions


@pytest.mark.parametrize("bits", [20, 45, 54])
def test_the_reference_multiplies_as_the_schoolbook_does(bits: int) -> None:
    problem = Ntt.make(size=256, limbs=2, bits=bits, operation="product")
    for limb, q in enumerate(problem.moduli):
        a, b = (values[limb] for values in problem.operands)
        assert problem.reference()[limb].tolist() == schoolbook(a, b, q)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("size", [2**11, 2**12, 2**16, 2**17])
def test_the_reference_multiplies_as_flint_does(size: int, bits: int) -> None:
    problem = Ntt.make(size=size, limbs=2, bits=bits, operation="product")
    for limb, q in enumerate(problem.moduli):
        a, b = (values[limb] for values in problem.operands)
        assert problem.reference()[limb].tolist() == by_flint(a, b, q)


@pytest.mark.parametrize("bits", WIDTHS)
def test_forward_results_are_values_of_the_polynomial_in_bit_reversed_order(bits: int) -> None:
    problem = Ntt.make(size=2**13, limbs=1, bits=bits)
    places = [0, 1, 2, 3, 4095, 8190, 8191]
    q = problem.moduli[0]
    expected = [value_at(problem.operands[0][0], point_of(place, q, 2**13), q) for place in places]
    assert problem.reference()[0, places].tolist() == expected


@pytest.mark.parametrize("bits", [13, 14, 20, 30, 31, 45, 54])
@pytest.mark.parametrize("fill", ["random", "most"])
def test_all_lanes_of_the_cpu_compute_the_same(bits: int, fill: str) -> None:
    """With 13 bits, no size has transforms on several lanes: only products differ."""
    size, limbs = (2**11, 1 + (bits > 14)) if bits > 13 else (2**8, 1)
    moduli = field.first_primes(limbs, bits, size)
    if _apps.ntt_lanes(max(moduli), 2**11) == 1:
        pytest.skip("this CPU has no AVX-512")
    assert _apps.ntt_lanes(max(moduli), size) == (8 if bits > 13 else 1)
    tables, random = Tables(moduli, size), np.random.default_rng(bits)
    most = np.array(moduli, np.uint64)[:, None] - np.uint64(1)
    a, b = (
        random.integers(0, most, (limbs, size), np.uint64, endpoint=True)
        if fill == "random"
        else np.repeat(most, size, axis=1)
        for _ in range(2)
    )
    weights = most[:, 0].copy()
    factors = np.repeat(weights[:, None], limbs, axis=1)
    calls: list[tuple[Callable[..., Array], tuple[Array, ...]]] = [
        (_apps.ntt_forward, (a, tables.forward)),
        (_apps.ntt_inverse, (a, tables.inverse, tables.scales)),
        (_apps.ntt_multiply, (a, b, tables.moduli)),
        (_apps.ckks_scale, (a, b, weights, tables.moduli)),
        (_apps.ckks_convert, (a, weights, tables.moduli, factors, tables.moduli)),
    ]
    for function, arguments in calls:
        of_lanes, of_one = (function(*arguments, has_one_lane=one) for one in (False, True))
        np.testing.assert_array_equal(of_lanes, of_one, err_msg=function.__name__)


# ---- PEs


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("radix", RADIXES)
@pytest.mark.parametrize("tasklets", [1, 7, 11, 16, 24])
def test_one_pe_is_right_with_every_radix_and_number_of_tasklets(
    bits: int, radix: int, tasklets: int
) -> None:
    # A product includes forward transforms.
    for operation in ("forward", "product") if tasklets == 16 else ("product",):
        problem = Ntt.make(
            size=256,
            limbs=2,
            bits=bits,
            steps="1",
            radix=radix,
            tasklets=tasklets,
            operation=operation,
        )
        result = assert_right(problem, (1, 1, 1, 1))
    a, b = (values[1] for values in problem.operands)
    assert result[1].tolist() == schoolbook(a, b, problem.moduli[1])


DECOMPOSITIONS = [
    ("256", 16, (1, 1, 1, 3)),
    ("2048", 2, (1, 1, 1, 1)),
    ("16x16", 16, (1, 1, 1, 2)),
    ("16x16", 4, (16, 1, 1, 1)),
    ("16x32", 2, (8, 1, 1, 1)),
    ("64x16", 4, (2, 1, 1, 3)),
    ("2x128", 2, (2, 1, 1, 2)),
    ("8x8x8", 2, (2, 4, 1, 1)),
    ("16x4x16", 4, (4, 1, 1, 2)),
    ("4x16x64", 4, (1, 16, 1, 1)),
    ("4x4x4x4", 4, (4, 4, 4, 1)),
    ("4x4x4x4", 2, (2, 4, 1, 3)),
    ("2x16x8x4", 2, (2, 4, 2, 2)),
    ("16x16x16", 16, (1, 2, 1, 1)),
]


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize(("steps", "radix", "shape"), DECOMPOSITIONS)
def test_every_decomposition_is_right(
    bits: int, steps: str, radix: int, shape: tuple[int, ...]
) -> None:
    """Balanced and not, with axes of length 1, with slices that divide the limbs and slices that
    do not.
    """
    size = int(np.prod([int(step) for step in steps.split("x")]))
    for operation in ("inverse", "product"):  # a product includes forward transforms
        problem = Ntt.make(
            size=size,
            limbs=4,
            bits=bits,
            steps=steps,
            radix=radix,
            operation=operation,
            tasklets=11,
        )
        assert_right(problem, shape)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("operation", ["forward", "inverse", "product"])
@pytest.mark.parametrize("chunks", [2, 3, 6])
def test_chunks_do_not_change_the_result(chunks: int, operation: str, bits: int) -> None:
    """With two slices, three limbs of a chunk fill one slice and half of the other."""
    problem = Ntt.make(
        size=256, limbs=6, bits=bits, steps="16x16", operation=operation, chunks=chunks
    )
    for slices in {1, 6 // chunks}:
        assert_right(problem, (4, 1, 1, slices))
    if chunks == 2:
        assert_right(problem, (4, 1, 1, 2))


def test_chunks_that_do_not_divide_the_limbs_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"chunks \(4\) must divide the 6 limbs"):
        Ntt.make(size=256, limbs=6, chunks=4)


@pytest.mark.parametrize("limbs", [1, 3])
@pytest.mark.parametrize(
    ("steps", "shape"),
    [("16x16", (16, 1, 1, 1)), ("8x8x8", (8, 8, 1, 1)), ("16x16x2", (16, 2, 1, 1))],
)
def test_blocks_of_an_odd_number_of_narrow_elements_have_a_gap(
    steps: str, shape: tuple[int, ...], limbs: int
) -> None:
    """Before the first and after the last step only if a PE has several limbs."""
    size = int(np.prod([int(step) for step in steps.split("x")]))
    problem = Ntt.make(size=size, limbs=limbs, bits=30, steps=steps, operation="product")
    cut = problem.cut(shape)
    elements = limbs * size // cut.pes_per_limb
    assert cut.elements == elements
    axis = cut.shape.index(elements // limbs)
    assert cut.exchanged_bytes(axis) == 4 * elements // limbs * (limbs + 1)
    assert min(map(cut.host_bytes, (False, True))) == 4 * elements or limbs > 1
    assert_right(problem, shape)


def test_narrow_elements_halve_windows_and_exchanges() -> None:
    narrow, wide = (Ntt.make(size=2**12, limbs=4, bits=bits).cut((64, 1, 1, 2)) for bits in WIDTHS)
    assert wide.exchanged_bytes(0) == 2 * narrow.exchanged_bytes(0)
    assert wide.bytes == 2 * narrow.bytes
    assert wide.table_bytes(1) == 2 * narrow.table_bytes(1)


@pytest.mark.parametrize("steps", ["16x16", "4x16x4"])
def test_every_technique_is_right(steps: str) -> None:
    """The pr techniques replace the program between its launches."""
    assert_right(
        Ntt.make(size=256, limbs=3, steps=steps, operation="product"), (4, 1, 1, 2), *TECHNIQUES
    )


@pytest.mark.parametrize("bits", [18, 29, 31, 53])
def test_narrow_moduli_are_right(bits: int) -> None:
    assert_right(Ntt.make(size=256, limbs=2, bits=bits, operation="product"), (8, 1, 1, 1))


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("fill", ["zero", "most", "one"])
def test_extreme_values_are_right(bits: int, fill: str) -> None:
    """Values of the largest size reach the largest intermediate values."""
    moduli = field.first_primes(2, bits, 2**12)
    most = np.array(moduli, np.uint64)[:, None] - np.uint64(1)
    values = np.broadcast_to(
        {"zero": 0 * most, "most": most, "one": 0 * most + np.uint64(1)}[fill], (2, 2**12)
    ).copy()
    for operation in ("forward", "inverse", "product"):
        b = values if operation == "product" else None
        assert_right(Ntt(moduli, values, b, operation=operation, steps="4", radix=2), (1, 1, 1, 2))


def test_inverse_undoes_forward() -> None:
    """On PEs, with results of PEs."""
    there = Ntt.make(size=1024, limbs=2)
    transformed = apps.run(there, shape=(8, 1, 1, 2), iters=1).result
    back = Ntt(there.moduli, transformed, operation="inverse", steps="2")
    np.testing.assert_array_equal(
        apps.run(back, shape=(2, 1, 1, 1), iters=1).result, there.operands[0]
    )


@pytest.fixture
def strict_machine() -> Iterator[None]:
    """A strict machine: it faults on misaligned transfers and stack overflows."""
    dpuemu.machine(strict=True)
    yield
    dpuemu.machine(strict=False)


@pytest.mark.usefixtures("strict_machine")
@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize(
    ("size", "steps", "radix", "pes"),
    [(2048, "2048", 2, 1), (256, "4x16x4", 2, 4), (256, "1", 16, 1)],
)
def test_stacks_and_transfers_are_within_their_limits(
    bits: int, size: int, steps: str, radix: int, pes: int
) -> None:
    for operation in ("inverse", "product"):
        problem = Ntt.make(
            size=size,
            limbs=1,
            bits=bits,
            steps=steps,
            operation=operation,
            tasklets=24,
            radix=radix,
        )
        assert_right(problem, (pes, 1, 1, 1))


def test_old_values_in_mram_do_not_change_the_result() -> None:
    problem = Ntt.make(size=256, limbs=3, steps="4x16x4", operation="product")
    shape = (4, 2, 1, 2)
    with pidcomm.allocate(pes=16) as pe_set:
        pe_set.hypercube(*shape).write(np.full((16, 1 << 16), 0xA5, np.uint8))
        with Stage(pe_set, shape, problem.place(shape), {"technique": "tile"}) as stage:
            np.testing.assert_array_equal(problem.run(stage), problem.reference())


def test_phases_are_a_kernel_per_step_and_an_alltoall_between_steps() -> None:
    problem = Ntt.make(size=256, limbs=2, steps="4x4x16")
    run = apps.run(problem, shape=(4, 4, 1, 2), iters=1)
    calls = {name: cost.calls for name, cost in run.costs.items()}
    assert calls == {"host": 2, "scatter": 1, "kernel": 3, "alltoall": 2, "gather": 1}


# ---- layouts


@pytest.mark.parametrize("word", field.WORDS)
@pytest.mark.parametrize(("steps", "radix", "shape"), DECOMPOSITIONS)
def test_layouts_have_every_element_once(
    word: field.Word, steps: str, radix: int, shape: tuple[int, ...]
) -> None:
    sizes = tuple(int(step) for step in steps.split("x"))
    cut = Decomposition(int(np.prod(sizes)), sizes, shape, 4, radix, word)
    values = np.arange(4 * cut.size, dtype=np.uint64).reshape(4, -1)
    for is_inverse in (False, True):
        rows = cut.rows(values, is_inverse=is_inverse)
        np.testing.assert_array_equal(cut.values(rows, is_inverse=not is_inverse), values)


def test_pes_of_a_limb_come_before_slices() -> None:
    problem = Ntt.make(size=2**12, limbs=4)
    assert [problem.shape_of(pes) for pes in (1, 8, 64, 128, 256)] == [
        (1, 1, 1, 1),
        (8, 1, 1, 1),
        (64, 1, 1, 1),
        (64, 1, 1, 2),
        (64, 1, 1, 4),
    ]


@pytest.mark.parametrize(
    ("size", "steps", "radix"),
    list(product([2**8, 2**9, 2**12, 2**17], ["1", "2", "3", "4"], RADIXES)),
)
def test_steps_are_powers_of_the_radix_or_refused(size: int, steps: str, radix: int) -> None:
    units = (size.bit_length() - 1) / (radix.bit_length() - 1)
    if units % 1 or units < int(steps):
        with pytest.raises(
            ArgumentError, match=rf"size {size} (is not a power of|has . factors of) radix {radix}"
        ):
            steps_of(size, steps, radix)
        return
    if size > 2048 ** int(steps):
        with pytest.raises(ArgumentError, match="must be at most 2048"):
            steps_of(size, steps, radix)
        return
    sizes, chosen_radix = steps_of(size, steps, radix)
    assert (len(sizes), int(np.prod(sizes)), chosen_radix) == (int(steps), size, radix)
    assert max(sizes) <= radix * min(sizes)


# ---- rules


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 2**9, "radix": 16}, "size 512 is not a power of radix 16"),
        ({"size": 300}, "size 300 must be a power of two from 256 to 131072"),
        ({"size": 128}, "size 128 must be a power of two from 256"),
        ({"size": 2**18}, "size 262144 must be a power of two from 256 to 131072"),
        ({"size": 2**30}, "size 1073741824 must be a power of two from 256 to 131072"),
        (
            {"size": 2**12, "steps": "1"},
            "step 4096 of 4096 must be at most 2048, so that a row and its twiddles fit",
        ),
        (
            {"size": 2**17, "limbs": 1024, "steps": "1"},
            "step 131072 of 131072 must be at most 2048",
        ),
        ({"steps": "1x256"}, "step 1 of 1x256 must be a power of radix 16"),
        ({"steps": 2}, r"steps \(2\) must be a str"),
        ({"radix": 2.0}, r"radix \(2.0\) must be an integer"),
        ({"steps": "8x8"}, "steps 8x8 must be 1 to 4 sizes with the product 256"),
        ({"steps": "2x2x2x2x16"}, "must be 1 to 4 sizes"),
        ({"steps": "8x32", "radix": 4}, "step 8 of 8x32 must be a power of radix 4"),
        ({"steps": "5"}, "steps 5 must be 1 to 4 sizes with the product 256"),
        ({"steps": "0"}, "steps must be a number from 1 to 4, or sizes such as 256x256, not 0"),
        ({"steps": "16,16"}, "16,16"),
        ({"radix": 8}, "radix 8 must be one of 2, 4, 16"),
        ({"tasklets": 25}, r"tasklets \(25\) must be between 1 and 24"),
        ({"bits": 55}, r"bits \(55\) must be between 2 and 54"),
        ({"bits": 10}, "there are 0 primes of 10 bits that are 1 modulo 2 \\* 256, not 1"),
        ({"limbs": 0, "generate": "uniform"}, r"limbs \(0\) must be between 1"),
        ({"operation": "add"}, "operation 'add' must be one of forward, inverse, product"),
        ({"generate": "normal"}, "generator 'normal' is unknown"),
    ],
)
def test_options_that_break_a_rule_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Ntt.make(**{"size": 256, "limbs": 1, **options})


@pytest.mark.parametrize(
    ("q", "message"),
    [
        (257 * 65537, "16843009 is not prime"),
        (2**61 - 1, "has 61 bits; at most 54"),
        (1000003, "is 67 modulo 2 \\* 256; it must be 1"),
    ],
)
def test_moduli_that_break_a_rule_are_refused(q: int, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Ntt([q], np.zeros((1, 256), np.uint64))
    with pytest.raises(ArgumentError, match=r"modulus \(7681\.7\) must be an integer"):
        Ntt([7681.7], np.zeros((1, 256), np.uint64))  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match=r"number of limbs \(0\) must be between 1"):
        Ntt([], np.zeros((0, 256), np.uint64))
    with pytest.raises(ArgumentError, match="a is list; it must be a uint64 array"):
        Ntt([7681], [[0] * 256])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="b is only for products; the operation is forward"):
        Ntt([7681], np.zeros((1, 256), np.uint64), np.zeros((1, 256), np.uint64))
    with pytest.raises(ArgumentError, match="moduli must be distinct; 7681 is twice"):
        Ntt([7681, 7681], np.zeros((2, 256), np.uint64))


def test_elements_above_their_modulus_are_refused() -> None:
    values = np.zeros((2, 256), np.uint64)
    values[1, 7] = 7681
    with pytest.raises(
        ArgumentError, match=r"a\[1, 7\] is 7681; it must be below its modulus 7681"
    ):
        Ntt([12289, 7681], values)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (
            (32, 1, 1, 1),
            (
                "axis 0 of shape 32x1x1x1 has 32 PEs; steps 1 and 2 of 16x16 allow a power of two"
                " up to 16"
            ),
        ),
        ((3, 1, 1, 1), "axis 0 of shape 3x1x1x1 has 3 PEs"),
        (
            (16, 2, 1, 1),
            "axis 1 of shape 16x2x1x1 has 2 PEs; the steps 16x16 allow a power of two up to 1",
        ),
        ((16, 1, 1, 4), "has 4 slices for 3 limbs"),
        ((16, 1, 1), "needs a shape of 4 axes"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        apps.run(Ntt.make(size=256, limbs=3, steps="16x16"), shape=shape)


def test_too_many_pes_are_refused() -> None:
    with pytest.raises(
        ArgumentError, match="64 PEs are too many: the steps 16x16 allow 16 PEs per limb"
    ):
        apps.run(Ntt.make(size=256, limbs=3, steps="16x16"), pes=64)


# ---- files


def save(path: Path, **changes: Array | None) -> Path:
    """Write a file with two limbs; arrays in `changes` replace others, None leaves them out."""
    values = np.arange(512, dtype=np.uint64).reshape(2, 256)
    arrays = {
        "moduli": np.array([7681, 12289], np.uint64),
        "a": values,
        "b": values[::-1].copy(),
        **changes,
    }
    kept: dict[str, Any] = {name: array for name, array in arrays.items() if array is not None}
    np.savez(path, **kept)
    return path


def test_files_are_read(tmp_path: Path) -> None:
    problem = Ntt.make(data=save(tmp_path / "a.npz"), operation="product")
    assert problem.moduli == [7681, 12289]
    assert_right(problem, (4, 1, 1, 1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"moduli": None}, "arrays moduli are missing"),
        ({"b": None}, "arrays b are missing"),
        ({"moduli": np.array([7681.0, 12289])}, "moduli has dtype float64"),
        ({"a": np.zeros((2, 256), np.int64)}, "a is int64 of shape"),
        ({"a": np.zeros((3, 256), np.uint64)}, r"a is uint64 of shape \(3, 256\)"),
        ({"b": np.zeros((2, 512), np.uint64)}, "b has size 512; a has 256"),
        ({"a": np.full((2, 256), 9999, np.uint64)}, r"a\[0, 0\] is 9999"),
        ({"moduli": np.array([7681, 7680], np.uint64)}, "modulus 7680 is not prime"),
        ({"a": np.zeros((2, 300), np.uint64)}, "size 300 must be a power of two"),
    ],
)
def test_files_that_break_a_rule_are_refused(
    tmp_path: Path, changes: dict[str, Array | None], message: str
) -> None:
    with pytest.raises(FileContentError, match=rf"a\.npz: {message}"):
        Ntt.make(data=save(tmp_path / "a.npz", **changes), operation="product")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radix": 8}, "radix 8 must be one of"),
        ({"tasklets": 25}, r"tasklets \(25\)"),
        ({"steps": "8x8"}, "steps 8x8 must be 1 to 4 sizes with the product 256"),
        ({"operation": "add"}, "operation 'add' must be one of"),
        ({"bits": 20}, r"bits \(20\) is only for generators"),
    ],
)
def test_options_that_do_not_fit_a_file_are_no_error_of_the_file(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        Ntt.make(data=save(tmp_path / "a.npz"), **options)
    assert not isinstance(caught.value, FileContentError)


def test_files_that_are_no_npz_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(b"moduli")
    with pytest.raises(ArgumentError, match=r"a\.npz: not an \.npz file"):
        Ntt.make(data=path)
    with pytest.raises(Error, match=r"no file|cannot read"):
        Ntt.make(data=tmp_path / "none.npz")
    with pytest.raises(ArgumentError, match=r"size \(256\) is only for generators"):
        Ntt.make(data=save(path), size=256)
