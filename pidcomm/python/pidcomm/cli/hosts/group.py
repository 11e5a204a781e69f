"""The group of the commands `pidcomm hosts`."""

from __future__ import annotations

from pidcomm.cli.app import add_group

hosts = add_group(
    "hosts",
    "Run programs over several hosts, show plans, and measure.",
    "pidcomm hosts run -n 2 --pes 64 -- pidcomm info",
)
