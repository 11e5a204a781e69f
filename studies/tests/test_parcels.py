"""MPI by travelling threads and the single-threaded engines, on the simulated machines."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from test_pictures import assert_legible

from pidcomm import ArgumentError, Error
from pidcomm_studies.papers.figure import Request
from pidcomm_studies.papers.figures import NAMES, get
from pidcomm_studies.parcels import host, patterns, scaling
from pidcomm_studies.parcels.build import ENGINES, HERE, categories, compile_program
from pidcomm_studies.parcels.count import CountError, count
from pidcomm_studies.parcels.run import Machine
from pidcomm_studies.pictures import points as of_papers

PROGRAMS = Path(__file__).parent / "parcels"
MPIEXEC = Path(sys.executable).parent / "mpiexec"
RANKS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for compiled files."""
    return tmp_path_factory.mktemp("parcels")


@pytest.fixture(scope="module", params=ENGINES)
def machine(request: pytest.FixtureRequest, folder: Path) -> Machine:
    """A machine with each engine."""
    return Machine(request.param, folder)


@pytest.fixture(scope="module")
def pim(folder: Path) -> Machine:
    """The machine with travelling threads."""
    return Machine("pim", folder)


@pytest.fixture(scope="module")
def programs(folder: Path) -> dict[str, Path]:
    """The compiled programs by name.

    The programs that fill many bytes do not count their own instructions.
    """
    own = {
        name: compile_program(HERE / "programs" / f"{name}.c", folder)
        for name in ("posted", "exchange", "copy")
    }
    own |= {"pattern": compile_program(HERE / "programs" / "pattern.c", folder, counts=False)}
    return own | {path.stem: compile_program(path, folder) for path in PROGRAMS.glob("*.c")}


def test_every_engine_keeps_the_rules_of_the_standard(
    machine: Machine, programs: dict[str, Path]
) -> None:
    run = machine.run(programs["conformance"], 2, checks=True)
    # A single-threaded engine may leave a message until the sender's next call.
    expected = "rank 0: messages_progress_without_calls\n" if machine.engine.is_conventional else ""
    assert (run.output, run.code, run.blocked) == (expected, 0, ())


@pytest.mark.parametrize("messages", [4, 14])
def test_random_patterns_lose_double_and_reorder_no_message(
    machine: Machine, programs: dict[str, Path], tmp_path: Path, messages: int
) -> None:
    operations = [patterns.make(1000 * messages + i, 1 + i % RANKS, messages) for i in range(100)]
    file = tmp_path / "patterns.txt"
    file.write_text(patterns.write(operations))
    run = machine.run(programs["pattern"], RANKS, [file], checks=True, seconds=100)
    assert run.blocked == ()
    received = patterns.read(run.output)
    for number, pattern in enumerate(operations):
        of_pattern = [reception for reception in received if reception.pattern == number]
        assert list(patterns.wrong(pattern, of_pattern)) == [], f"pattern {number}"


def test_the_rules_find_lost_doubled_and_reordered_messages() -> None:
    pattern = [
        patterns.Operation(0, patterns.ISEND, 1, 5, 0, 8, 0, 0),
        patterns.Operation(0, patterns.ISEND, 1, 5, 0, 16, 1, 1),
        patterns.Operation(1, patterns.IRECV, 0, 5, 0, 99, 0),
        patterns.Operation(1, patterns.IRECV, 0, 5, 0, 99, 1),
    ]
    first = patterns.Received(0, 2, 0, 5, 8, 0, 0)
    second = patterns.Received(0, 3, 0, 5, 16, 0, 1)
    assert list(patterns.wrong(pattern, [first, second])) == []
    assert list(patterns.wrong(pattern, [first]))
    swapped = [patterns.Received(0, 2, 0, 5, 16, 0, 1), patterns.Received(0, 3, 0, 5, 8, 0, 0)]
    assert list(patterns.wrong(pattern, swapped))
    assert list(patterns.wrong(pattern, [first, patterns.Received(0, 3, 0, 5, 8, 0, 0)]))
    assert list(patterns.wrong(pattern, [first, patterns.Received(0, 3, 0, 5, 16, 0, -1)]))


@pytest.mark.skipif(not MPIEXEC.exists(), reason="the package mpich is not installed")
def test_patterns_without_wildcards_end_as_with_a_real_mpi(
    machine: Machine, programs: dict[str, Path], tmp_path: Path
) -> None:
    operations = [patterns.make(i, RANKS, 12, wildcards=False) for i in range(40)]
    file = tmp_path / "patterns.txt"
    file.write_text(patterns.write(operations))
    library = next(MPIEXEC.parent.parent.glob("lib/libmpi.so.*"))
    process = subprocess.run(
        [str(MPIEXEC), "-n", str(RANKS), sys.executable, str(PROGRAMS / "real_mpi.py"), str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "MPI4PY_LIBMPI": str(library), "OMP_NUM_THREADS": "1"},
    )
    assert process.returncode == 0, process.stderr
    ours = machine.run(programs["pattern"], RANKS, [file], seconds=100)
    assert sorted(ours.output.splitlines()) == sorted(process.stdout.splitlines())


def test_messages_that_find_no_buffer_wait_and_stay_in_order(
    machine: Machine, programs: dict[str, Path]
) -> None:
    run = machine.run(programs["flood"], 2, checks=True)
    assert (run.output, run.code, run.blocked) == ("", 0, ())


def test_equal_runs_have_equal_counts(machine: Machine, programs: dict[str, Path]) -> None:
    runs = [machine.run(programs["posted"], 2, (256, 50)) for _ in range(6)]
    assert all(run == runs[0] for run in runs)  # the system places programs at random addresses
    assert runs[0].code == 0


def test_counts_do_not_depend_on_the_names_of_folders(
    machine: Machine, programs: dict[str, Path], tmp_path: Path
) -> None:
    runs = []
    for length in (1, 20, 37, 90):
        target = tmp_path / ("f" * length)
        target.mkdir()
        runs.append(machine.run(Path(shutil.copy(programs["posted"], target)), 2, (256, 40)))
    assert all(run == runs[0] for run in runs)


def test_a_process_that_waits_for_ever_is_named(
    machine: Machine, programs: dict[str, Path]
) -> None:
    run = machine.run(programs["blocked"], 2)
    assert (0, "MPI_Recv") in run.blocked
    with pytest.raises(Error, match=r"blocked on 2 nodes did not end in 0.2 s"):
        machine.run(programs["blocked"], 2, (2,), seconds=0.2)


def test_barriers_of_two_communicators_in_two_orders_are_found(
    machine: Machine, programs: dict[str, Path]
) -> None:
    if machine.engine.is_conventional:
        assert machine.run(programs["blocked"], 2, (3,)).blocked == (
            (0, "MPI_Barrier"),
            (1, "MPI_Barrier"),
        )
    else:
        with pytest.raises(Error, match="barriers of different communicators"):
            machine.run(programs["blocked"], 2, (3,))


def test_an_error_of_mpi_names_rank_and_rule(machine: Machine, programs: dict[str, Path]) -> None:
    with pytest.raises(
        Error, match=r"rank \d, cycle \d+: MPI error 6: the rank is not in the communicator"
    ):
        machine.run(programs["blocked"], 2, (1,))


def test_copies_count_one_load_and_one_store_per_word(
    pim: Machine, programs: dict[str, Path]
) -> None:
    def references(copies: int) -> float:
        return pim.run(programs["copy"], 1, (4096, copies)).total("references", ("application",))

    per_copy = references(3) - references(2)
    assert 2 * 512 <= per_copy <= 2 * 512 + 20  # the call and the loop around the copy


def test_count_charges_each_block_once() -> None:
    assembly = (
        "\t.section\t.text.pim_queue\nf:\n\tmovq\t8(%rdi), %rax\n\taddl\t$1, (%rax)\n\ttestq\t%rax,"
        " %rax\n\tje\t.L2\n"
    )
    assembly += "\tpushq\t%rbx\n.L2:\n\tret\n"
    lines = count(assembly, categories(), "state").splitlines()
    records = [line.split("\t")[2] for line in lines if line.startswith("\t.short")]
    # je ends the first block: a load, then a load and a store of one instruction.
    assert [record.split(", ")[:2] for record in records] == [["4", "3"], ["1", "1"], ["1", "0"]]
    assert lines.count(f"\t.byte\t{categories().index('queue')}, 0") == 3
    assert sum("machine_step" in line for line in lines) == 3
    lines = count("f:\n\tleave\n\tleal\t8(%rdi), %eax\n\tret\n", categories(), "state").splitlines()
    assert [
        line.split("\t")[2].split(", ")[:2] for line in lines if line.startswith("\t.short")
    ] == [["3", "1"]]
    with pytest.raises(CountError, match="inline assembly"):
        count(
            'f:\n#APP\n# 1 "a.c" 1\n\tincq\t%rax\n# 0 "" 2\n#NO_APP\n\tret\n', categories(), "state"
        )
    for instruction in ("rep stosq", "addr32 rep movsl", "repnz scasb"):
        with pytest.raises(CountError, match=instruction):
            count(f"f:\n\t{instruction}\n", categories(), "state")


def test_the_protocol_needs_only_the_hooks(tmp_path: Path) -> None:
    declared = "".join((HERE / "pim" / name).read_text() for name in ("hooks.h", "queues.h"))
    for source in (HERE / "pim" / "queues.c", HERE / "pim" / "protocol.c"):
        object_file = tmp_path / f"{source.stem}.o"
        subprocess.run(
            [
                *[
                    "gcc",
                    "-std=c11",
                    "-pedantic",
                    "-Wall",
                    "-Wextra",
                    "-Werror",
                    "-O2",
                    "-ffreestanding",
                    "-o",
                ],
                str(object_file),
                f"-I{HERE}",
                "-c",
                str(source),
            ],
            check=True,
        )
        undefined = subprocess.run(
            ["nm", "-u", str(object_file)], capture_output=True, text=True, check=True
        ).stdout.split()
        names = {word for word in undefined if word != "U" and not word.startswith("_GLOBAL")}
        assert [word for word in names if f"{word}(" not in declared] == []


def test_travelling_threads_do_not_juggle_and_single_threaded_engines_do(
    machine: Machine, programs: dict[str, Path]
) -> None:
    run = machine.run(programs["posted"], 2, (256, 100))
    assert (run.total("instructions", ("juggling",)) > 0) == machine.engine.is_conventional
    assert run.total("instructions", ("network",)) > 0


def test_a_trace_shows_threads_parcels_and_queues(
    pim: Machine, programs: dict[str, Path], tmp_path: Path
) -> None:
    from pidcomm_studies.pictures import style, timeline

    run = pim.run(programs["exchange"], 2, (256,), trace=True)
    assert {event["event"] for event in run.events} == {"active", "parcel", "queues"}
    assert max(event["unexpected"] for event in run.events if event["event"] == "queues") == 1
    picture = timeline.draw(run.events, "exchange")
    assert_legible(picture)
    (axes,) = picture.findobj(Axes)
    assert axes.texts
    assert all(
        text.get_window_extent().x0 >= axes.bbox.x1 for text in axes.texts if text.get_text()
    )
    style.save(picture, tmp_path / "exchange.svg")
    with pytest.raises(ArgumentError, match="17 nodes"):
        timeline.draw([{"event": "parcel", "node": 16}], "too many")


def test_barrier_and_halo_scale(folder: Path) -> None:
    rows = list(scaling.measure(list(ENGINES), [4, 36], 256, lambda _: None))
    seconds = {(row.program, row.engine, row.nodes): row.seconds for row in rows}
    for engine in ENGINES:
        assert seconds["barrier", engine, 36] > seconds["barrier", engine, 4]  # log2(nodes) rounds
        # Each process has four neighbours.
        assert seconds["halo", engine, 36] < 2 * seconds["halo", engine, 4]


CALLGRIND = """\
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim
ob=/tmp/posted
fn=MPID_CH_Check_incoming'MPID_Probe'PMPI_Probe'main
0 9 2 1 3 4 5 1 0 0 2 1 0 0
fn=PMPI_Send'main
0 7 1 0
calls=1 0
0 99 99 99
fn=PMPI_Barrier'PMPI_Finalize'main
0 50
ob=/usr/lib/libc.so.6
fn=memcpy'PMPI_Send'main
0 5 1 1
"""


def test_counts_of_a_real_mpi_have_calls_and_categories() -> None:
    rows = host.rows_of("eager", 20, [CALLGRIND, CALLGRIND, "fn=listener'main\n0 1\n"])
    assert rows == [
        host.Row("eager", 20, "MPI_Probe", "juggling", 18, 6, 24, 2, 4, 2, 18, 0),
        host.Row("eager", 20, "MPI_Send", "entry", 14, 2, 0, 0, 0, 0, 0, 0),
        host.Row("eager", 20, "MPI_Send", "libc", 10, 4, 0, 0, 0, 0, 0, 0),
    ]
    assert [line[2:] for line in host.totals(rows)] == [
        ["all", "42", "12"],
        ["overhead", "32", "8"],
    ]
    with pytest.raises(Error, match="1 processes in place of 2"):
        host.rows_of("eager", 20, [CALLGRIND])


def test_only_the_first_run_of_code_misses_the_instruction_cache(
    folder: Path, tmp_path: Path
) -> None:
    code = "x += rank;" * 400  # each one loads, adds and stores

    def cycles(rounds: int) -> float:
        body = f"volatile int x = 0; for (int i = 0; i < {rounds}; ++i) {{ {code} }} return x;"
        run = Machine("mpich", folder).run(_program(tmp_path, body), 1)
        return run.total("cycles", ("application",))

    one, two, three = map(cycles, (1, 2, 3))
    lines = 400 * 2 * 4 / 32  # at least two instructions of 4 bytes each, in lines of 32 bytes
    assert one > three - two + 20 * lines / 2  # two lines of the first cache are one of the second


def test_a_row_is_copied_with_a_load_and_a_store(folder: Path, programs: dict[str, Path]) -> None:
    words, rows = (
        Machine("pim", folder, row_copies=copies).run(programs["posted"], 2, (81920, 100))
        for copies in (0, 1)
    )
    assert (words.code, rows.code) == (0, 0)
    copied = 20 * 2 * 81920  # 20 messages, into a parcel and out of it
    # Source and target may begin at other places of their rows: twice the loads and stores. The
    # threads that copy need a tenth more.
    assert copied / 256 * 2 <= rows.total("references", ("copy",)) <= 1.15 * copied / 256 * 4
    assert words.total("references", ("copy",)) >= copied / 8 * 2
    assert rows.total("instructions") == words.total("instructions")


def test_a_program_states_its_number_of_processes(
    machine: Machine, programs: dict[str, Path]
) -> None:
    for program, nodes, needed in (("posted", 3, "2"), ("posted", 1, "2"), ("exchange", 1, "2 to")):
        with pytest.raises(ArgumentError, match=rf"^{program} needs {needed}.* not {nodes}$"):
            machine.run(programs[program], nodes)


def test_the_machine_ends_with_the_command() -> None:
    command = [str(MPIEXEC.parent / "pidcomm"), "parcels", "run", str(PROGRAMS / "blocked.c")]
    with subprocess.Popen([*command, "--", "2"], stdout=subprocess.DEVNULL) as process:
        while not (machines := [pid for pid in _descendants(process.pid) if _is_machine(pid)]):
            assert process.poll() is None
            time.sleep(0.05)
        machine = os.pidfd_open(machines[0])
        process.kill()
    with open(machine, "rb"):
        select.select([machine], [], [])  # until the machine has ended


def _descendants(process: int) -> Iterator[int]:
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:  # it has ended
        return
    for child in map(int, children):
        yield child
        yield from _descendants(child)


def _is_machine(process: int) -> bool:
    try:
        name, state = Path(f"/proc/{process}/stat").read_text().split()[1:3]
        return name == "(machine-pim)" and state != "Z"
    except OSError:  # it has ended
        return False


def test_figures_have_all_points_and_every_difference_has_a_cause() -> None:
    names = [name for name in NAMES if name.startswith("parcels/")]
    request = Request(names)
    for figure in map(get, names):
        points = figure.points(request)
        assert {point.panel for point in points} == {panel.name for panel in figure.panels}
        statements = list(figure.statements(request, points))
        assert all(each.agrees is not None or "by definition" in each.here for each in statements)
        assert [each for each in statements if each.agrees is False and not each.cause] == []
        assert_legible(of_papers.draw(figure, points, statements))


@pytest.mark.parametrize("end", ["return -1;", "exit(-1);", "exit(rank ? -1 : 0);"])
def test_the_code_of_a_process_is_reported(machine: Machine, tmp_path: Path, end: str) -> None:
    run = machine.run(_program(tmp_path, end), 2)
    assert (run.code, run.blocked) == (-1, ())


def test_a_program_that_crashes_or_stops_the_machine_is_named(pim: Machine, tmp_path: Path) -> None:
    with pytest.raises(Error, match="SIGSEGV; the stack of a process has 1 MiB"):
        pim.run(
            _program(
                tmp_path, "volatile char local[1600000]; local[rank] = 1; return local[rank] - 1;"
            ),
            2,
        )
    with pytest.raises(Error, match="ended the simulated machine"):
        pim.run(_program(tmp_path, "_exit(0);"), 2)


def test_a_call_that_is_left_out_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="MPI_Initialized"):
        _program(tmp_path, "return MPI_Initialized(&rank);")


def test_a_long_run_of_instructions_counts_each_reference(pim: Machine, tmp_path: Path) -> None:
    run = pim.run(_program(tmp_path, "volatile int x = 0;" + "x = 0;" * 6000 + "return x;"), 1)
    assert 6000 <= run.total("references", ("application",)) <= 6100


def _program(folder: Path, end: str) -> Path:
    """Compile a program that ends after MPI_Finalize with some C code."""
    source = folder / "ends.c"
    source.write_text(
        "#include <mpi.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(int argc, char"
        " **argv) {\n  int rank;\n  MPI_Init(&argc, &argv);\n  MPI_Comm_rank(MPI_COMM_WORLD,"
        f" &rank);\n  MPI_Finalize();\n  {end}\n}}\n"
    )
    return compile_program(source, folder)


def test_bad_input_is_named(pim: Machine, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="nodes"):
        pim.run(Path("any"), 0)
    with pytest.raises(ArgumentError, match="lamm"):
        Machine("lamm", folder)
    with pytest.raises(ArgumentError, match="banks"):
        Machine("pim", folder, banks=0)
    with pytest.raises(ArgumentError, match="is not a file"):
        compile_program(tmp_path / "missing.c", tmp_path)
    wrong = tmp_path / "wrong.c"
    wrong.write_text("int main(void) { return x; }\n")
    with pytest.raises(ArgumentError, match=r"wrong\.c"):
        compile_program(wrong, tmp_path)
