"""Run random message patterns on the engines of parcels and check what every receive got.

A case is a batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from attack import Attack, Scene

from pidcomm import Error
from pidcomm_studies.parcels import patterns
from pidcomm_studies.parcels.build import ENGINES, HERE, compile_program
from pidcomm_studies.parcels.run import Machine

RANKS = 8
BATCH = 100  # patterns of one run; late messages of a pattern would reach the next one
MESSAGES = (2, 6, 12, 24)
SECONDS = 100  # of a batch
CHECKED_EVERY = 4  # in every fourth batch, the queues are checked after each step
# Values of the machine: they change which threads and messages are first.
SCHEDULES = {
    "latency": (0, 1, 30, 200, 5000),
    "bytes_per_cycle": (1, 8, 64),
    "depth": (1, 2, 4, 9),
    "banks": (1, 4, 64),
    "row_copies": (0, 1),
}


def broken(
    machine: Machine, program: Path, batch: list[list[patterns.Operation]], file: Path, checks: bool
) -> Iterator[str]:
    """Run patterns; yield a sentence for each broken rule."""
    file.write_text(patterns.write(batch))
    try:
        run = machine.run(program, RANKS, [file], checks=checks, seconds=SECONDS)
        received = defaultdict(list)
        for reception in patterns.read(run.output):
            received[reception.pattern].append(reception)
    except (Error, ValueError) as error:
        yield str(error)
        return
    if run.blocked:
        yield f"processes wait for ever: {run.blocked}"
    for number, pattern in enumerate(batch):
        for sentence in patterns.wrong(pattern, received[number]):
            yield f"pattern {number}: {sentence}"


def main() -> None:
    """Run batches on all engines."""
    attack = Attack()
    scene = Scene(attack)
    program = compile_program(HERE / "programs" / "pattern.c", scene.folder, counts=False)
    machines = [Machine(engine, scene.folder) for engine in ENGINES]
    total = 0
    for number in attack.numbers():
        choice = attack.random(number)
        batch = [
            patterns.make(choice.getrandbits(62), 1 + i % RANKS, MESSAGES[i % len(MESSAGES)])
            for i in range(BATCH)
        ]
        schedule = {name: choice.choice(values) for name, values in SCHEDULES.items()}
        for machine in machines:
            machine.settings.update(schedule)
            checks = number % CHECKED_EVERY == 0
            for sentence in broken(machine, program, batch, scene.folder / "patterns.txt", checks):
                attack.find(f"{machine.engine.name}, {schedule}: {sentence}", number=number)
        total += BATCH
    print(f"{total} patterns on each of {len(machines)} engines")
    scene.close()
    attack.finish()


if __name__ == "__main__":
    main()
