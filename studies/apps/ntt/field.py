"""Primes q with q = 1 modulo 2N, and roots of unity modulo q."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pidcomm import ArgumentError
from pidcomm.arguments import Array


@dataclass(frozen=True)
class Word:
    """The words that hold residues on PEs.

    bits: width of a word, WORD_BITS of apps/pe/modular.h. modulus_bits: the largest width of a
    modulus. apps/pe/modular.h uses the other bits for values above the modulus.
    """

    bits: int
    modulus_bits: int

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """Element type."""
        return np.dtype(f"uint{self.bits}")

    @property
    def bytes(self) -> int:
        """Bytes of a residue."""
        return self.bits // 8

    @property
    def factor_bytes(self) -> int:
        """Bytes of a factor and its quotient."""
        return 2 * self.bytes

    def factors(self, pairs: Array, *, has_modulus: bool = False) -> Array:
        """Convert pairs (factor, quotient) for 64-bit words, shape (..., 2), to pairs for words of
        `bits` bits.

        has_modulus: the first pair of each row has a modulus, whose quotient is equal for all
        words.
        """
        shifts = np.full(pairs.shape, 64 - self.bits, np.uint64)
        shifts[..., 0] = 0
        if has_modulus:
            shifts[..., 0, :] = 0
        return (pairs >> shifts).astype(self.dtype)


NARROW, WIDE = WORDS = Word(32, 30), Word(64, 54)
BITS_MAX = WIDE.modulus_bits
"""Largest width of a modulus."""
_BASES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


def is_prime(n: int) -> bool:
    """Return whether n < 2^64 is prime: the Miller-Rabin test with the first 12 primes, which is
    exact below 2^64.
    """
    if n < 2:
        return False
    for prime in _BASES:
        if n % prime == 0:
            return n == prime
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in _BASES:
        power = pow(base, odd, n)
        if power in (1, n - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % n
            if power == n - 1:
                break
        else:
            return False
    return True


def primes(bits: int, size: int) -> Iterator[int]:
    """Yield the primes q < 2^bits with q = 1 modulo 2 * size and exactly `bits` bits, the
    largest first.
    """
    step = 2 * size
    top = ((1 << bits) - 2) // step * step + 1
    for candidate in range(top, 1 << (bits - 1), -step):
        if is_prime(candidate):
            yield candidate


def first_primes(count: int, bits: int, size: int) -> list[int]:
    """Return the first `count` of `primes`. Raises ArgumentError if there are fewer."""
    moduli = [prime for prime, _ in zip(primes(bits, size), range(count), strict=False)]
    if len(moduli) < count:
        raise ArgumentError(
            f"there are {len(moduli)} primes of {bits} bits that are 1 modulo 2 * {size}, not"
            f" {count}: use more bits or fewer limbs"
        )
    return moduli


def check_moduli(moduli: Sequence[int], size: int) -> None:
    """Raise ArgumentError for a modulus that is too wide, not prime or not 1 modulo 2 * size,
    and if two are equal.
    """
    for q in moduli:
        if q.bit_length() > BITS_MAX:
            raise ArgumentError(
                f"modulus {q} has {q.bit_length()} bits; at most {BITS_MAX} are possible"
            )
        if not is_prime(q):
            raise ArgumentError(f"modulus {q} is not prime")
        if q % (2 * size) != 1:
            raise ArgumentError(f"modulus {q} is {q % (2 * size)} modulo 2 * {size}; it must be 1")
    if len(set(moduli)) < len(moduli):
        raise ArgumentError(
            f"moduli must be distinct; {next(q for q in moduli if list(moduli).count(q) > 1)} is"
            " twice"
        )


def word_of(moduli: Sequence[int]) -> Word:
    """Return the narrowest words that hold residues of all moduli."""
    widest = max(q.bit_length() for q in moduli)
    return next(word for word in WORDS if widest <= word.modulus_bits)


def root_of(q: int, size: int) -> int:
    """Return a primitive (2 * size)-th root of unity modulo the prime q, for a power of two
    `size`.
    """
    for base in range(2, q):
        root = pow(base, (q - 1) // (2 * size), q)
        if pow(root, size, q) == q - 1:
            return root
    raise ArgumentError(f"{q} has no root of unity of order 2 * {size}")
