"""Make the n-th allocation, mapping or thread of a host program fail, for every n, once or from
then on.

The program must end with a clean error status or the right result. After a single failure its
second attempt must succeed. It must not crash, hang or leave files.
"""

from __future__ import annotations

import random
from itertools import zip_longest

from attack import COMMAND_SECONDS, Attack, Scene

RIGHT, RECOVERED, WRONG, FAILED = 0, 3, 4, 5  # exit statuses of host.c


def main() -> None:
    """Run the faults in a random order."""
    attack = Attack()
    scene = Scene(attack)
    folder = attack.build / "tests" / "campaign"
    library, host = folder / "libcampaign_faults.so", str(folder / "campaign_host")
    machine = {"LD_PRELOAD": str(library), "DPUEMU_RANKS": "1", "DPUEMU_THREADS": "2"}
    status, output = scene.run([host], {**machine, "FAULT_N": "0"})
    calls = [line.split()[1:] for line in output.splitlines() if line.startswith("calls ")]
    if status != RIGHT or not calls:
        attack.find(f"status {status} without a fault: {output[-500:]}", [host])
        attack.finish()
    kinds = [
        [(name, n, on) for n in range(1, int(count) + 1)]
        for name, count in calls
        for on in ("once", "on")
    ]
    for kind in kinds:
        random.Random(attack.seed).shuffle(kind)
    faults = [
        fault for turn in zip_longest(*kinds) for fault in turn if fault
    ]  # rare kinds come first
    for number in attack.numbers(len(faults)):
        name, n, on = faults[number]
        attack.random(number)
        variables = {**machine, "FAULT_CALL": name, "FAULT_N": str(n), "FAULT_ON": on}
        status, output = scene.run([host], variables)
        left = scene.leftovers()
        problem = ""
        if status is None:
            problem = f"does not end within {COMMAND_SECONDS} s"
        elif status not in (RIGHT, RECOVERED, FAILED):
            problem = f"ends with status {status}"
        elif status == FAILED and on == "once":
            problem = "does not recover"
        elif left:
            problem = f"leaves {', '.join(left)}"
        if problem:
            command = ["env", *(f"{key}={value}" for key, value in variables.items()), host]
            attack.find(
                f"host program {problem} if {name} fails {on} from call {n}: {output[-300:]}",
                command,
            )
    scene.close()
    attack.finish()


if __name__ == "__main__":
    main()
