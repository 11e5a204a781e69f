"""Print which part of each source folder ran.

Reads the JSON summary of gcovr from standard input.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict

COUNTS = ("line_covered", "line_total", "branch_covered", "branch_total")


def main() -> None:
    """Print a line per folder and the sums of the top folders."""
    folders: dict[str, list[int]] = defaultdict(lambda: [0] * len(COUNTS))
    for file in json.load(sys.stdin)["files"]:
        folder = os.path.dirname(file["filename"])
        for place in {folder, folder.partition("/")[0] + " (all)"}:
            folders[place] = [
                total + file[count] for total, count in zip(folders[place], COUNTS, strict=True)
            ]
    print(f"{'folder':<34}{'lines':>16}{'branches':>18}")
    for place, (lines, all_lines, branches, all_branches) in sorted(folders.items()):
        line_share, branch_share = (
            100 * lines / max(all_lines, 1),
            100 * branches / max(all_branches, 1),
        )
        print(
            f"{place:<34}{all_lines:>8} {line_share:6.1f}%{all_branches:>10} {branch_share:6.1f}%"
        )


if __name__ == "__main__":
    main()
