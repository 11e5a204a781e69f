"""What bars and sweeps show of a row, and the limit of that."""

from __future__ import annotations

from dataclasses import dataclass

from pidcomm.evaluation.pictures.rows import JsonRow


@dataclass(frozen=True)
class Metric:
    """A bandwidth of rows; the names are those of `pidcomm.evaluation.bench.Row`. 1 GB = 1e9 bytes."""

    key: str
    label: str
    title: str

    def of(self, row: JsonRow) -> float:
        """Return it in GB/s."""
        return float(row[self.key])

    def limit_of(self, row: JsonRow) -> float | None:
        """Return what it were if the host's pass ran at the streaming limit; None where no limit was measured."""
        if row["limit_gb_s"] is None:
            return None
        if self.key == "bus_gb_s":
            return float(row["limit_gb_s"])
        host_us, pe_us = row["t_p50_us"], row.get("pe_us", 0.0)
        limit_us = host_us * row["limit_pct"] / 100 + pe_us
        return float(self.of(row) * (host_us + pe_us) / limit_us)


METRICS = {
    "bus": Metric("bus_gb_s", "bus bandwidth (GB/s)", "Bus bandwidth of collectives, and the streaming limit"),
    "algbw": Metric(
        "algbw_gb_s", "algorithm bandwidth (GB/s)", "Algorithm bandwidth of collectives, and the streaming limit"
    ),
}
