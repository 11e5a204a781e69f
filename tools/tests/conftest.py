"""Fixtures that tests share."""

from emulated_machine import pes as pes
