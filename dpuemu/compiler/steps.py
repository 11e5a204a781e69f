"""Write the assembly that counts the steps of a multiplication or division at run time, and that
divides as a DPU does, for counting.py.
"""

from __future__ import annotations

COUNTER = "%r15"  # the register that counts instructions

# gcc does not use r11 (-ffixed-r11), so the counting code may change r11. It may also change the
# flags, because multiplication and division change them.
_OWN = "%r11d"


def count_steps(instructions: int) -> str:
    """Return the instruction that adds `instructions` and the result of the counting code to the
    counter.
    """
    return f"\tleaq\t{instructions}({COUNTER},%r11), {COUNTER}"


# Division also borrows one of these registers, and saves it in _SAVED, which gcc does not use
# either.
_BORROWED = {"%rcx": ("%ecx", "%cx", "%cl"), "%rsi": ("%esi", "%si"), "%rdi": ("%edi", "%di")}
_SAVED = "%xmm15"


def multiplication_steps(operands: list[str]) -> list[str]:
    """Return code that counts the bits of the smaller factor; at least 1."""
    first, second = operands[0], operands[1]
    return [
        f"\tmovl\t{first}, {_OWN}",
        f"\tcmpl\t{second}, {_OWN}",
        f"\tcmova\t{second}, {_OWN}",
        f"\tbsrl\t{_OWN}, {_OWN}",  # of 0: leaves 0
        count_steps(1),
    ]


def division_steps(divisor: str, is_signed: bool) -> list[str]:
    """Return code that counts the bits of the quotient of %eax and the divisor; at least 1."""
    wide, names = next(
        item
        for item in _BORROWED.items()
        if not any(name in divisor for name in (item[0], *item[1]))
    )
    high, low = _OWN, names[0]
    code = [f"\tmovq\t{wide}, {_SAVED}", f"\tmovl\t%eax, {high}", f"\tmovl\t{divisor}, {low}"]
    if is_signed:  # the magnitudes
        code += [
            f"\tnegl\t{high}",
            f"\tcmovs\t%eax, {high}",
            f"\tnegl\t{low}",
            f"\tcmovs\t{divisor}, {low}",
        ]
    code += [
        f"\torl\t$1, {high}",
        f"\torl\t$1, {low}",
        f"\tbsrl\t{high}, {high}",
        f"\tbsrl\t{low}, {low}",
        f"\tcmpl\t{low}, {high}",
        f"\tcmovb\t{high}, {low}",
        f"\tsubl\t{low}, {high}",
    ]
    return [*code, count_steps(1), f"\tmovq\t{_SAVED}, {wide}"]


def signed_division(mnemonic: str, divisor: str) -> list[str]:
    """Return code for a signed division in which the least integer divided by -1 has the quotient
    and the remainder of a DPU, the least integer and 0, where x86 faults.
    """
    return [
        f"\tcmp{mnemonic[-1]}\t$-1, {divisor}",
        "\tjne\t771f",
        "\tnegl\t%eax" if mnemonic == "idivl" else "\tnegq\t%rax",
        "\txorl\t%edx, %edx",
        "\tjmp\t772f",
        "771:",
        f"\t{mnemonic}\t{divisor}",
        "772:",
    ]
