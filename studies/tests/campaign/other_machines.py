"""Random collectives on the address maps of other PIM machines against the oracle."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from attack import Attack

sys.path.append(str(Path(__file__).resolve().parents[1]))
from machine_cases import check, draw

from pidcomm_studies.machines import load_pim_machine, pim_machines


def main() -> None:
    """Run cases on one machine after another."""
    attack = Attack()
    machines = [load_pim_machine(name) for name in pim_machines()]
    counts: Counter[str] = Counter()
    for number in attack.numbers():
        machine, choice = machines[number % len(machines)], attack.random(number)
        case = draw(machine, choice)
        verdict = check(case, choice.getrandbits(31))
        counts[machine.name] += 1
        if verdict.wrong:
            attack.find(f"{case}, {case.problem}: {verdict.first}", number=number)
    print(", ".join(f"{name}: {count} cases" for name, count in sorted(counts.items())))
    attack.finish()


if __name__ == "__main__":
    main()
