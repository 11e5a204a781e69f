"""Write the assembly that counts the steps of a multiplication or division at run time, for counting.py."""

from __future__ import annotations

COUNTER = "%r15"  # the register that counts instructions

# The counting code borrows these registers and saves them in _SAVED, which gcc does not use (-ffixed-xmm14). It may
# change the flags, because multiplication and division change them too.
_BORROWED = [("%rcx", "%ecx"), ("%rsi", "%esi"), ("%rdi", "%edi"), ("%r8", "%r8d"), ("%r9", "%r9d")]
_NAMES = {"%rcx": ("%ecx", "%cx", "%cl"), "%rsi": ("%esi", "%si"), "%rdi": ("%edi", "%di")}
_SAVED = ("%xmm15", "%xmm14")


def _borrow(operands: str, count: int) -> list[tuple[str, str]]:
    """Return registers that the operands do not name: their names at 64 and at 32 bits."""
    free = [pair for pair in _BORROWED if not any(name in operands for name in (pair[0], *_NAMES.get(pair[0], ())))]
    return free[:count]


def _counted(registers: list[tuple[str, str]], code: list[str]) -> list[str]:
    """Return code that adds 1 + the first borrowed register to the counter, and restores the registers."""
    pairs = list(zip(registers, _SAVED, strict=False))
    return [
        *(f"\tmovq\t{wide}, {saved}" for (wide, _), saved in pairs),
        *code,
        f"\tleaq\t1({COUNTER},{registers[0][0]}), {COUNTER}",
        *(f"\tmovq\t{saved}, {wide}" for (wide, _), saved in pairs),
    ]


def multiplication_steps(operands: list[str]) -> list[str]:
    """Return code that counts the bits of the smaller factor; at least 1."""
    first, second = operands[0], operands[1]
    registers = _borrow(first + second, 1)
    least = registers[0][1]
    return _counted(
        registers,
        [
            f"\tmovl\t{first}, {least}",
            f"\tcmpl\t{second}, {least}",
            f"\tcmova\t{second}, {least}",
            f"\torl\t$1, {least}",
            f"\tbsrl\t{least}, {least}",
        ],
    )


def division_steps(divisor: str, is_signed: bool) -> list[str]:
    """Return code that counts the bits of the quotient of %eax and the divisor; at least 1."""
    registers = _borrow(divisor, 2)
    high, low = registers[0][1], registers[1][1]
    code = [f"\tmovl\t%eax, {high}", f"\tmovl\t{divisor}, {low}"]
    if is_signed:  # the magnitudes
        code += [f"\tnegl\t{high}", f"\tcmovs\t%eax, {high}", f"\tnegl\t{low}", f"\tcmovs\t{divisor}, {low}"]
    code += [
        f"\torl\t$1, {high}",
        f"\torl\t$1, {low}",
        f"\tbsrl\t{high}, {high}",
        f"\tbsrl\t{low}, {low}",
        f"\tcmpl\t{low}, {high}",
        f"\tcmovb\t{high}, {low}",
        f"\tsubl\t{low}, {high}",
    ]
    return _counted(registers, code)
