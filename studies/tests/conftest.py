"""Fixtures that tests share."""

from emulated_machine import cube as cube
from emulated_machine import pes as pes
from emulated_machine import strict_machine as strict_machine
