"""Compare random movements between PEs with their definitions in NumPy."""

from __future__ import annotations

import sys
from pathlib import Path

from attack import Attack

import pidcomm

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from movement_cases import difference


def main() -> None:
    """Run cases until the time is over."""
    attack = Attack()
    with pidcomm.allocate(pes=192) as pes:
        for number in attack.numbers():
            if (sentence := difference(pes, attack.random(number))) is not None:
                attack.find(sentence, number=number)
    attack.finish()


if __name__ == "__main__":
    main()
