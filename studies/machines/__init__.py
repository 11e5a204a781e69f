"""Other PIM machines: their address maps, the plans of collectives on them, and modelled times.

A machine is a file here. `geometry` maps host addresses to PEs, `plans` makes plans, `execution`
carries them out on bytes in the order of the host's addresses, and `pricing` predicts times.
"""

from pidcomm_studies.machines.execution import run
from pidcomm_studies.machines.geometry import (
    ROWS,
    Geometry,
    PimMachine,
    is_pim_machine,
    load_pim_machine,
    pim_machines,
)
from pidcomm_studies.machines.plans import Pass, Plan, plan, ways
from pidcomm_studies.machines.pricing import Price, price

__all__ = [
    "ROWS",
    "Geometry",
    "Pass",
    "PimMachine",
    "Plan",
    "Price",
    "is_pim_machine",
    "load_pim_machine",
    "pim_machines",
    "plan",
    "price",
    "run",
    "ways",
]


def __dir__() -> list[str]:
    return __all__
