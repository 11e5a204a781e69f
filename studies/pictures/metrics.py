"""The quantities that bars and sweeps can show.

For each quantity, the streaming limit gives a limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from pidcomm_studies.pictures.rows import JsonRow


@dataclass(frozen=True)
class Metric:
    """A quantity of rows. key: a field of `pidcomm.bench.timing.Row`, or `time`."""

    key: str
    label: str
    title: str

    def of(self, row: JsonRow) -> float:
        """Return the quantity of a row, in the unit of the label."""
        return _call_us(row) / 1e3 if self.key == "time" else float(row[self.key])

    def limit_of(self, row: JsonRow) -> float | None:
        """Return the value for a call whose host part runs at the streaming limit.

        If the row has no limit, return None.
        """
        if row["limit_gb_s"] is None:
            return None
        if self.key == "bus_gb_s":
            return float(row["limit_gb_s"])
        limit_us: float = row["t_p50_us"] * row["limit_pct"] / 100 + row.get("pe_us", 0.0)
        return limit_us / 1e3 if self.key == "time" else self.of(row) * _call_us(row) / limit_us


def _call_us(row: JsonRow) -> float:
    return float(row["t_p50_us"] + row.get("pe_us", 0.0))


METRICS = {
    "time": Metric("time", "time of a call (ms)", "Time of collectives"),
    "speed-up": Metric(
        "speed_up", "speed-up over conventional", "Speed-up of collectives over conventional"
    ),
    "bus": Metric("bus_gb_s", "bus bandwidth (GB/s)", "Bus bandwidth of collectives"),
    "algbw": Metric(
        "algbw_gb_s", "algorithm bandwidth (GB/s)", "Algorithm bandwidth of collectives"
    ),
}
