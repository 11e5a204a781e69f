"""Embedding tables: partitions, shapes, pooling, skew and tasklets against NumPy, and wrong
inputs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pidcomm import ArgumentError
from pidcomm.arguments import Array
from pidcomm.model import load_machine, predict
from pidcomm_studies import apps
from pidcomm_studies.apps.dlrm.criteo import Criteo, write
from pidcomm_studies.apps.embedding import (
    MODELS,
    PARTITIONS,
    PATHS,
    Embedding,
    Model,
    clocks_of,
)
from pidcomm_studies.apps.embedding.bags import GENERATORS, Bags, bags_of, full_bags
from pidcomm_studies.apps.inputs import generated
from pidcomm_studies.papers.scalability import embedding_price as price
from pidcomm_studies.papers.scalability.paper import PAPER_CHOICE

MACHINE = load_machine(price.MACHINE)
SMALL = Model(tables=3, rows=50, columns=6, pooling=5, batch=4)


def table_values(model: Model, dtype: str, seed: int = 1) -> Array:
    """Return tables with integers of the whole range, whose sums wrap, or with normal floats."""
    random, shape = np.random.default_rng(seed), (model.tables, model.rows, model.columns)
    if dtype == "float32":
        return random.standard_normal(shape, np.float32)
    return random.integers(-(2**31), 2**31 - 1, shape, np.int32)


def ragged(model: Model, seed: int = 1) -> Bags:
    """Return bags of 0 to 2 * pooling indices, some of them empty, some with repeated indices."""
    random = np.random.default_rng(seed)
    counts = random.integers(0, 2 * model.pooling + 1, model.batch * model.tables)
    counts[:: max(len(counts) // 3, 1)] = 0
    starts = np.concatenate([[0], np.cumsum(counts)])
    indices = random.integers(0, model.rows, starts[-1])
    indices[1::3] = indices[: len(indices[1::3])]
    return bags_of(model.tables, model.rows, starts, indices)


def oracle(tables: Array, bags: Bags) -> Array:
    """Return the sums of all bags by NumPy: integers wrap, floats are added in float64."""
    count, _, columns = tables.shape
    sums = np.zeros(
        (bags.samples * count, columns), np.float64 if tables.dtype == np.float32 else np.int64
    )
    bag = np.repeat(np.arange(len(sums)), bags.counts())
    np.add.at(sums, bag, tables[bag % count, bags.indices])
    whole = sums.reshape(bags.samples, count, columns)
    return (
        whole
        if tables.dtype == np.float32
        else whole.astype(np.uint64).astype(np.uint32).view(np.int32)
    )


def assert_right(problem: Embedding, shape: tuple[int, int, int], *techniques: str) -> None:
    """Check PEs and CPUs against NumPy."""
    right = oracle(problem.tables, problem.bags)
    runs = list(apps.compare(problem, shape=shape, techniques=techniques or ["tile"], iters=1))
    for result, name in [
        (problem.reference(), "CPU"),
        (problem.pooled_plainly(), "one thread"),
        *((run.result, run.technique) for run in runs),
    ]:
        assert result.dtype == problem.tables.dtype
        if result.dtype == np.float32:
            assert (np.abs(result - right) <= problem.bound()).all(), name
        else:
            np.testing.assert_array_equal(result, right, err_msg=name)
    assert all(run.wrong == 0 for run in runs)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("partition", PARTITIONS)
def test_every_partition_type_and_path_is_right(partition: str, dtype: str, path: str) -> None:
    shape = PARTITIONS[partition](8, SMALL)
    assert_right(Embedding(table_values(SMALL, dtype), ragged(SMALL), path=path), shape)


@pytest.mark.parametrize("technique", ["conventional", "pr", "pr+im+cm"])
@pytest.mark.parametrize("path", PATHS)
def test_every_technique_is_right(path: str, technique: str) -> None:
    assert_right(
        Embedding(table_values(SMALL, "int32"), ragged(SMALL), path=path), (2, 2, 2), technique
    )


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (Model(1, 1, 1, 1, 1), (1, 1, 1)),  # one row, one column
        (Model(1, 1, 1, 3, 5), (1, 8, 1)),  # PEs without rows
        (Model(1, 100, 1, 9, 7), (1, 2, 4)),  # PEs without columns
        (Model(2, 9, 3, 4, 3), (8, 1, 1)),  # PEs without tables
        (Model(1, 64, 64, 2, 6), (1, 1, 64)),  # a column for each PE
        (Model(5, 33, 7, 0, 4), (1, 4, 2)),  # empty bags only
        (Model(1, 20, 17, 40, 33), (1, 8, 3)),  # slices of 6 columns, of which the last has 5
        (Model(7, 31, 5, 3, 9), (3, 5, 2)),  # lengths that divide nothing
    ],
)
def test_every_size_and_shape_is_right(model: Model, shape: tuple[int, int, int]) -> None:
    assert_right(Embedding(table_values(model, "int32"), ragged(model)), shape)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_several_threads_split_and_join(dtype: str) -> None:
    """Requests and sums have more bytes than one thread takes; a part of 25 rows has few bags."""
    model = Model(2, 1000, 8, 40, 600)
    assert_right(Embedding(table_values(model, dtype), ragged(model), path="gather"), (1, 40, 2))


@pytest.mark.parametrize("tasklets", [1, 2, 11, 24])
@pytest.mark.parametrize("columns", [1, 6, 9])
def test_every_number_of_tasklets_is_right(tasklets: int, columns: int) -> None:
    model = SMALL._replace(columns=columns, batch=50, pooling=20)
    assert_right(
        Embedding(table_values(model, "int32"), ragged(model), tasklets=tasklets), (1, 2, 1)
    )


@pytest.mark.parametrize(
    "spec",
    [
        "uniform",
        "skewed:biased=0",
        "skewed:biased=8",
        "zipf",
        "zipf:exponent=0,spread=0",
        "zipf:exponent=3",
    ],
)
def test_every_generator_makes_indices_of_the_table(spec: str) -> None:
    indices = generated(spec, GENERATORS)(9, 2, 640, 8)
    assert indices.shape == (9, 2, 8)
    assert_right(
        Embedding(table_values(Model(2, 640, 4, 8, 9), "int32"), full_bags(indices, 640)), (1, 8, 1)
    )


def test_the_skew_is_the_number_of_indices_in_the_first_rows() -> None:
    indices = generated("skewed:biased=6,hot=3", GENERATORS)(100, 1, 1 << 20, 8)
    assert ((indices < 3).sum(axis=2) >= 6).all()
    assert (indices[:, :, 6:] < 3).mean() < 0.1


def test_popular_rows_come_first_unless_they_are_spread() -> None:
    near = generated("zipf:spread=0", GENERATORS)(100, 1, 4096, 10)
    far = generated("zipf:spread=1", GENERATORS)(100, 1, 4096, 10)
    assert np.median(near) < 512 < np.median(far)
    assert len(np.unique(near)) == pytest.approx(len(np.unique(far)), rel=0.2)


def test_a_click_log_has_a_table_per_category_and_empty_bags_for_missing_categories(
    tmp_path: Path,
) -> None:
    log = Criteo().clicks(40)
    write(tmp_path / "clicks.gz", log)
    problem = Embedding.make(data=tmp_path / "clicks.gz", rows=100, columns=4, batch=40)
    np.testing.assert_array_equal(problem.bags.counts().reshape(40, 26), log.has_category)
    assert_right(problem, (2, 2, 2))


def test_pytorch_agrees() -> None:
    torch = pytest.importorskip("torch")
    tables, bags = table_values(SMALL, "float32"), ragged(SMALL)
    problem = Embedding(tables, bags)
    for table in range(SMALL.tables):
        layer = torch.nn.EmbeddingBag.from_pretrained(torch.tensor(tables[table]), mode="sum")
        counts = bags.counts()[table :: SMALL.tables]
        own = np.concatenate([bags.indices[bags.starts[b] : bags.starts[b + 1]] for b in range(table, len(bags.starts) - 1, SMALL.tables)])  # fmt: skip # noqa: E501
        offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
        sums = layer(torch.tensor(own.astype(np.int64)), torch.tensor(offsets)).numpy()
        assert (np.abs(problem.reference()[:, table] - sums) <= problem.bound()[:, table]).all()


def layers_by_numpy(problem: Embedding) -> Array:
    """Return the outputs of the layers by NumPy."""
    layers = problem.layers
    assert layers is not None

    def all_layers(x: Array, weights: Array, widths: Array, is_end: bool) -> Array:
        for i in range(1, len(widths)):
            size = widths[i] * (widths[i - 1] + 1)
            own, weights = weights[:size].reshape(widths[i], -1), weights[size:]
            x = x @ own[:, :-1].T + own[:, -1]
            x = x if is_end and i + 1 == len(widths) else np.maximum(x, 0)
        return x

    with np.errstate(over="ignore"):
        first = all_layers(layers.dense, layers.bottom, layers.bottom_widths, False)
        vectors = np.concatenate([first[:, None], oracle(problem.tables, problem.bags)], axis=1)
        products = vectors @ vectors.swapaxes(1, 2)
        i, j = np.tril_indices(vectors.shape[1], -1)
        return all_layers(
            np.concatenate([first, products[:, i, j]], axis=1), layers.top, layers.top_widths, True
        )[:, 0]


def test_the_host_computes_the_layers_of_the_model() -> None:
    problem = Embedding.make(quick=True, mlp=True, batch=5, tables=4)
    run = apps.run(problem, shape=(2, 4, 1), iters=1)
    np.testing.assert_array_equal(run.result, layers_by_numpy(problem))
    assert run.wrong == 0
    assert "13-256-128-32" in str(problem.facts["layers"])


def test_wrong_floats_are_found() -> None:
    problem = Embedding(table_values(SMALL, "float32"), ragged(SMALL))
    expected = problem.reference()
    changed = expected.copy()
    place = np.unravel_index(np.argmax(np.abs(expected)), expected.shape)
    changed[place] *= np.float32(1 + 1e-4)
    assert problem.wrong(expected, expected) == 0
    assert problem.wrong(changed, expected) == 1
    changed[place] = np.nan
    assert problem.wrong(changed, expected) == 1
    assert problem.wrong(changed[:1], expected) == expected.size


@pytest.mark.filterwarnings("error")
def test_equal_floats_that_are_not_finite_are_right() -> None:
    tables, bags = table_values(SMALL, "float32"), full_bags(np.zeros((4, 3, 5), np.uint32), 50)
    tables[0], tables[1] = np.inf, np.nan
    problem = Embedding(tables, bags)
    expected = problem.reference()
    assert problem.wrong(expected, expected) == 0
    changed = expected.copy()
    changed[0, 0, 0], changed[0, 1, 0], changed[0, 2, 0] = 1, np.inf, np.nan
    assert problem.wrong(changed, expected) == 3


def test_the_four_clocks_add_up() -> None:
    run = apps.run(
        Embedding(table_values(SMALL, "int32"), ragged(SMALL), path="gather"),
        shape=(1, 8, 1),
        iters=1,
    )
    assert run.total.assumed > 0
    assert clocks_of(run).total == pytest.approx(run.total.total + run.total.assumed)
    assert all(vars(clocks_of(run)).values())


@pytest.mark.parametrize(
    ("starts", "indices", "words"),
    [
        (
            [0, 1, 2, 3, 4],
            [0, 1, 49, 50],
            "table 1, sample 1: index 50 is not in the table; its rows are 0 to 49",
        ),
        ([0, 0, 2, 2, 3], [3, -1, 2], "table 1, sample 0: index -1 is not in the table"),
        ([0, 1, 2], [0, 1, 2], "starts must grow from 0 to 3"),
        ([0, 2, 1], [0], "starts must grow"),
        ([0, 1, 2, 3], [0, 1, 2], "a start for each sample and each of the 2 tables"),
        ([0.0, 1.0, 2.0], [0, 1], "must be integers"),
        ([0, 1, 2], [0.0, 1.0], "must be integers, one axis"),
    ],
)
def test_wrong_bags_are_refused(starts: list[Any], indices: list[Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        bags_of(2, 50, np.array(starts), np.array(indices))


def test_wrong_problems_are_refused() -> None:
    bags = ragged(SMALL)
    for tables, arguments, words in (
        (np.zeros((3, 50, 6)), {}, "float64"),
        (np.zeros((3, 50), np.int32), {}, r"shape \(3, 50\)"),
        (np.zeros((2, 50, 6), np.int32), {}, "the bags are for 3 tables; there are 2"),
        (np.zeros((3, 9, 6), np.int32), {}, "its rows are 0 to 8"),
        (np.zeros((3, 50, 6), np.int32), {"path": "tree"}, "path 'tree' is unknown"),
        (np.zeros((3, 50, 6), np.int32), {"tasklets": 25}, "tasklets"),
    ):
        with pytest.raises(ArgumentError, match=words):
            Embedding(tables, bags, **arguments)
    wide = Model(1, 2, 512, 1, 1)
    with pytest.raises(ArgumentError, match="slices of 512 columns"):
        Embedding(table_values(wide, "int32"), ragged(wide)).place((1, 1, 1))
    for wrong, words in (
        ({"model": "rm4"}, "model 'rm4' is unknown"),
        ({"dtype": "int8"}, "dtype 'int8' is unknown"),
        ({"mlp": True, "dtype": "float32"}, "type int32, not float32"),
        ({"data": Path("x"), "tables": 3}, "a click log sets tables"),
        ({"generate": "skewed:biased=99"}, r"biased \(99\) must be from 0 to pooling \(80\)"),
        ({"rows": 8, "scale": 2}, r"give rows \(8\) or scale \(2\), not both"),
    ):
        with pytest.raises(ArgumentError, match=words):
            Embedding.make(quick=True, **wrong)


def test_the_models_have_the_sizes_of_table_3() -> None:
    sizes = {
        name: round(model.tables * model.rows * model.columns * 4 / 2**30)
        for name, model in MODELS.items()
    }
    assert [sizes[name] for name in ("rm1", "rm2", "rm3")] == [20, 80, 100]
    assert Embedding.make(quick=True).facts["scale"] == "1/16384 of 16777216 rows"


# ---- prices


@pytest.mark.parametrize(
    ("work", "path"),
    [
        (
            price.Work(Model(2, 640, 8, 6, 30), (1, 4, 2), "skewed:biased=5,hot=10", "int32"),
            "reduce",
        ),
        (price.Work(Model(1, 4096, 64, 8, 400), (1, 256, 1)), "gather"),  # few indices on each PE
    ],
)
def test_the_kernel_is_priced_as_the_slowest_pe_of_a_run(work: price.Work, path: str) -> None:
    problem = Embedding(table_values(work.model, work.dtype), work.bags, path=path)
    run = apps.run(problem, shape=work.shape, iters=1)
    assert price.clocks(work, path, "tile", MACHINE).kernel == pytest.approx(
        run.kernel.modelled, rel=1e-3
    )
    assert work.mram_bytes(path) >= problem.place(work.shape).bytes


def test_the_transfers_are_priced_by_their_plans() -> None:
    work = price.Work(SMALL, (1, 4, 2))
    size, requests = work.part.pooled_bytes(4), work.requests[0].nbytes
    times = price.clocks(work, "reduce_scatter", "tile", MACHINE)
    plans: list[tuple[Any, str, int]] = [
        ("reduce_scatter", "010", size),
        ("gather", "010", size // 4),
    ]
    to_cpu = sum(
        predict(collective, work.shape, mask, bytes=n, machine=MACHINE).seconds
        for collective, mask, n in plans
    )
    assert times.pe_to_cpu == pytest.approx(to_cpu)
    to_pes = predict("broadcast", work.shape, "001", bytes=requests, machine=MACHINE).seconds
    assert times.cpu_to_pe == pytest.approx(to_pes)


def test_only_the_path_of_the_paper_reduces_in_the_clock_of_the_host() -> None:
    work = price.Work(MODELS["one"], (1, 64, 1))
    host = {way: price.clocks(work, *way, MACHINE).host for way in price.CHOICES}
    others = {host[way] for way in price.CHOICES if way != PAPER_CHOICE}
    assert len(others) == 1
    assert host[PAPER_CHOICE] > max(others)


def test_the_host_reads_the_sums_that_pes_wrote() -> None:
    """Bags have one index, so each is on one PE; a group of one bag has 4 lines."""
    model = MODELS["one"]._replace(pooling=1)
    runs, size = price.Work(model, (1, 64, 1)).written()
    assert 0.9 * model.batch < runs <= model.batch
    assert size == model.batch * 4 * model.columns
    assert price.Work(model, (1, 1, 64)).written() == (1, 4 * model.batch)
    assert price.Work(model._replace(pooling=0), (1, 64, 1)).written() == (0, 0)


def test_the_host_works_at_the_rate_of_memory_or_of_its_threads() -> None:
    size = 10**9
    start = 1e-6 * (
        MACHINE["call.part_us"] + (MACHINE["host.threads"] - 1) * MACHINE["call.start_us"]
    )
    assert price.host_seconds(MACHINE, 0, size, 0) < start + 1 / MACHINE["memory.read_gb_s"] + 1e-9
    one = MACHINE.with_values({"host.threads": 1})
    start = 1e-6 * MACHINE["call.part_us"]
    assert price.host_seconds(one, 0, size, 0) == pytest.approx(
        start + 1 / MACHINE["memory.thread_gb_s"]
    )
    assert price.host_seconds(MACHINE, 1, 8, 8) == price.host_seconds(one, 1, 8, 8)


def test_tables_that_exceed_the_mram_are_not_priced() -> None:
    with pytest.raises(
        ArgumentError, match=r"a PE of 1x1024x1 needs .* bytes of MRAM; it has 67108864"
    ):
        price.clocks(price.Work(MODELS["rm2"], (1, 1024, 1)), "reduce", "tile", MACHINE)


def test_the_cpu_reads_whole_lines() -> None:
    bags = full_bags(np.zeros((4, 2, 100), np.uint32), 9)
    one, many, more = (price.cpu_seconds(bags, columns, MACHINE) for columns in (1, 16, 17))
    assert one == many
    assert more == price.host_seconds(MACHINE, 0, 2 * 64 * 800, 0)
