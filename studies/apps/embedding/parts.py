"""The part of the tables and of the requests that each PE has, and its MRAM layout, from sizes
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pidcomm import ArgumentError
from pidcomm.arguments import Array
from pidcomm.bench.measure import require_bytes
from pidcomm_studies.apps.embedding.bags import Bags
from pidcomm_studies.apps.partition import WORD_BYTES, round_up
from pidcomm_studies.apps.placement import Placement

STACK_BYTES, PIECE_WORDS = 512, 16
# Of the 64 KiB of WRAM; the remainder is for the other variables of the program.
WRAM_BYTES = 60 * 1024
GROUP_WORDS = 64  # most words of sums that a tasklet keeps, unless one bag needs more


@dataclass(frozen=True)
class Part:
    """The part of one PE: numbers of tables, of rows of each, of columns, and of bags."""

    tables: int
    rows: int
    columns: int
    bags: int

    @property
    def start_words(self) -> int:
        """Words of a request before its indices."""
        return round_up(self.bags + 1, 2)

    @property
    def table_bytes(self) -> int:
        """Bytes of the part of the tables."""
        return round_up(4 * self.tables * self.rows * self.columns, WORD_BYTES)

    def pooled_bytes(self, blocks: int) -> int:
        """Return the bytes of the sums, as `blocks` equal blocks."""
        return round_up(4 * self.bags * self.columns, WORD_BYTES * blocks)

    def group(self, tasklets: int) -> int:
        """Return the number of bags that a tasklet pools together (the last group may have fewer).

        Raises ArgumentError if they do not fit in WRAM.
        """
        step = 1 + self.columns % 2  # a group writes whole words of 8 bytes
        most = max(GROUP_WORDS // (step * self.columns), 1)
        group = step * min(most, max(self.bags // (2 * step * tasklets), 1))
        words = (
            round_up(group + 2, 2)
            + PIECE_WORDS
            + round_up(self.columns, 2)
            + round_up(group * self.columns, 2)
        )
        room = WRAM_BYTES // tasklets - STACK_BYTES
        if 4 * words > room:
            raise ArgumentError(
                f"slices of {self.columns} columns need {4 * words} bytes of WRAM a tasklet;"
                f" {tasklets} tasklets have {room} each: use more PEs along z or fewer tasklets"
            )
        return group


def part_of(sizes: Sequence[int], samples: int, shape: Sequence[int]) -> Part:
    """Return the part of each PE of a shape. sizes: numbers of tables, of rows of each, and of
    columns.
    """
    tables, rows, columns = (-(-have // cut) for have, cut in zip(sizes, shape, strict=True))
    return Part(tables, rows, columns, samples * tables)


def requests_of(bags: Bags, part: Part, shape: Sequence[int]) -> Array:
    """Return the requests of PEs with equal x and y, one per row, x fastest: uint32, shape (x * y,
    words).

    Raises ArgumentError if memory is short.
    """
    from pidcomm_studies.apps import _apps

    least = 4 * (shape[0] * shape[1] * part.start_words + len(bags.indices))
    require_bytes(least, f"requests of {part.bags} bags for each of {shape[0] * shape[1]} PEs")
    return _apps.embedding_requests(
        bags.starts,
        bags.indices,
        bags.tables,
        shape[0],
        shape[1],
        part.tables,
        part.rows,
        part.start_words,
    )


def placement_of(
    part: Part,
    request_bytes: int,
    dtype: str,
    tasklets: int,
    *,
    path: str,
    blocks: int = 1,
    host_bytes: int = 0,
) -> Placement:
    """Return the program and layout of a PE. blocks: PEs that share the sums.

    With the path `gather`, PEs do not write the sums of groups of bags without indices, and the
    host does not read them.

    Raises ArgumentError if a bag does not fit in the WRAM of a tasklet.
    """
    pooled_bytes = part.pooled_bytes(blocks)
    return Placement(
        source=Path(__file__).parent / "kernel.c",
        resident={"tables": part.table_bytes},
        windows={
            # The last transfer of indices may pass the end.
            "requests": (request_bytes + 4 * PIECE_WORDS),
            "pooled": pooled_bytes,
            **({"reduced": pooled_bytes // blocks} if path == "reduce_scatter" else {}),
        },
        tasklets=tasklets,
        stack_bytes=STACK_BYTES,
        defines={
            **{
                "ROWS": part.rows,
                "COLUMNS": part.columns,
                "BAGS": part.bags,
                "START_WORDS": part.start_words,
            },
            **{"GROUP": part.group(tasklets), "PIECE": PIECE_WORDS},
            "SKIPS_EMPTY": int(path == "gather"),
            "VALUE": "float" if dtype == "float32" else "uint32_t",
        },
        host_bytes=host_bytes,
    )
