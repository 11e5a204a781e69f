"""The stand-in compiler's changes to C text, and what its instructions cost."""

from __future__ import annotations

import importlib
import sys
import time
from types import ModuleType

import pytest

from dpuemu import tools


@pytest.fixture(scope="module")
def source_model() -> ModuleType:
    sys.path.insert(0, str(tools.sdk_root() / "compiler"))
    try:
        return importlib.import_module("source_model")
    finally:
        sys.path.pop(0)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("long x;", "long long x;"),
        ("unsigned long x = 10UL + 0xFFL;", "unsigned long long x = 10ULL + 0xFFLL;"),
        ("int n = __builtin_popcountl(x);", "int n = __builtin_popcountll(x);"),
        ("{ uint32_t rest = size - rest; }", "{ uint32_t rest = 0; }"),
        ("{ int x = x; int y = y >> 1; }", "{ int x = 0; int y = 0; }"),
        ("#pragma unroll\nfor (;;) ;", "#pragma GCC unroll 8\nfor (;;) ;"),
        ("#pragma unroll 4\nfor (;;) ;", "#pragma GCC unroll 4\nfor (;;) ;"),
    ],
)
def test_c_that_differs_from_the_sdk_is_rewritten(
    source_model: ModuleType, source: str, expected: str
) -> None:
    assert source_model.adapt(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "long long x; double x = 1e-5L; char c = 'l'; const char *s = \"10L long\";",
        "double long x; long double y;",
        "{ T *p = mem_alloc(n * sizeof(*p)); }",
        "{ uint32_t n = sizeof(n); int a = (int)sizeof a; }",
        "{ struct node *node = (struct node *)x; enum mode mode = (enum mode)1; }",
        "{ uint32_t lo = n, hi = lo + 5; int i = 0, j = i; }",
        "{ int x = p->x; int y = s.y; int z = z_of(1); int k = k_table[0]; }",
        "{ uint32_t address = (uint32_t)&address; int f = f(1); }",
        "{ if (a) ; else a = a + 1; return a; }",
        "struct s { int long_x; };",
    ],
)
def test_other_c_is_unchanged(source_model: ModuleType, source: str) -> None:
    assert source_model.adapt(source) in (None, source)


def test_long_expressions_are_fast(source_model: ModuleType) -> None:
    begin = time.perf_counter()
    source_model.adapt(
        "{ int a = " + "abcdefgh + " * 5000 + "f(x); int b = " + "abcdefgh" * 5000 + " ? 1 : 2; }"
    )
    assert time.perf_counter() - begin < 30


@pytest.mark.parametrize("before", ["call f", "idivl %esi", "imull %esi"])
def test_results_in_fixed_registers_need_no_move_to_an_argument(before: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tools.sdk_root() / "compiler"))
        instructions = importlib.import_module("instructions")
    registers = instructions.Registers()

    def product_of(factors: str) -> float:
        run: float = registers.product(instructions.instruction_cost(f"imull {factors}")).run
        return run

    registers.execute(instructions.instruction_cost("movl (%rdi), %ecx"))
    kept = product_of("%ecx, %eax")
    for line in (before, "movl (%rdi), %ecx"):
        registers.execute(instructions.instruction_cost(line))
    assert product_of("%ecx, %eax") == kept - 1
    assert product_of("%ecx, %esi") == kept
