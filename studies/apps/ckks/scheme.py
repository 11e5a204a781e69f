"""The CKKS scheme with residue number systems: parameters, keys, encoding, encryption and
decryption.

This is for experiments, not audited cryptography: the random numbers are not secure, and nobody has
assessed the parameters. Polynomials have the shape (limbs, size). They are transforms, in
bit-reversed order, unless said otherwise.

Source: J. H. Cheon et al., Homomorphic encryption for arithmetic of approximate numbers, ASIACRYPT
2017; keys with digits: K. Han and D. Ki, Better bootstrapping for approximate homomorphic
encryption, CT-RSA 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log2, prod, sqrt

import numpy as np

from pidcomm import ArgumentError
from pidcomm.arguments import Array, as_integer
from pidcomm_studies.apps.ntt import field
from pidcomm_studies.apps.ntt.transforms import Tables

SIGMA = 3.2
"""Standard deviation of errors."""
CRT_LIMBS = (
    3  # decrypted coefficients come from this number of moduli, or from more if they are small
)
SCALE_BITS_MAX = 62  # so that encoded coefficients fit in int64
ERROR_MAX = 2.0**-10


@dataclass(frozen=True)
class Parameters:
    """The parameters of a multiplication.

    size: N. moduli: q_0 to q_L. extension: the moduli p of the extension. dnum: number of digits.
    scale_bits: an encoded message is multiplied by 2^scale_bits. Raises ArgumentError if they do
    not fit each other.
    """

    size: int
    moduli: tuple[int, ...]
    extension: tuple[int, ...]
    dnum: int
    scale_bits: int

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.level < 1:
            raise ArgumentError(
                f"level {self.level}: a multiplication drops a modulus, so the level must be at"
                " least 1"
            )
        if not 1 <= as_integer("dnum", self.dnum) <= len(self.moduli):
            raise ArgumentError(
                f"dnum {self.dnum} must be from 1 to {len(self.moduli)}, the number of moduli"
            )
        field.check_moduli(self.all, self.size)
        widest = max(prod(self.moduli[digit.start : digit.stop]) for digit in self.digits)
        if prod(self.extension) < widest:
            raise ArgumentError(
                f"the {len(self.extension)} moduli of the extension have"
                f" {log2(prod(self.extension)):.1f} bits; they need at least {log2(widest):.1f}, as"
                " the widest digit"
            )
        room = log2(prod(self.moduli)) - 1
        needed = 2 * self.scale_bits + 1  # coefficients of a product of messages of at most 1
        if needed > room:
            raise ArgumentError(
                f"the noise budget is exhausted: products have {needed} bits (scale"
                f" 2^{self.scale_bits}), and the {len(self.moduli)} moduli of level {self.level}"
                f" have {room + 1:.0f}"
            )
        as_integer("scale_bits", self.scale_bits, 1, SCALE_BITS_MAX)
        if self.error_bound() > ERROR_MAX:
            raise ArgumentError(
                f"scale 2^{self.scale_bits} leaves an error of up to {self.error_bound():.2g} in"
                f" products of messages of at most 1; it must be at most {ERROR_MAX:.2g}: use a"
                " larger scale"
            )

    @classmethod
    def of(cls, size: int, level: int, dnum: int, bits: int, scale_bits: int) -> Parameters:
        """Return parameters with primes of `bits` bits; the largest belong to the extension."""
        _check_level(level)
        if not 1 <= dnum <= level + 1:
            raise ArgumentError(
                f"dnum {dnum} must be from 1 to {level + 1}, the number of moduli of level {level}"
            )
        digit = ceil((level + 1) / dnum)
        primes = field.first_primes(level + 1 + digit, bits, size)
        return cls(size, tuple(primes[digit:]), tuple(primes[:digit]), dnum, scale_bits)

    @property
    def level(self) -> int:
        """L."""
        return len(self.moduli) - 1

    @property
    def all(self) -> tuple[int, ...]:
        """All moduli, those of the extension last."""
        return self.moduli + self.extension

    @property
    def digits(self) -> list[range]:
        """The moduli of each digit."""
        count = len(self.moduli)
        ends = [ceil(count * digit / self.dnum) for digit in range(self.dnum + 1)]
        return [range(start, end) for start, end in pairwise(ends)]

    @property
    def decrypted_limbs(self) -> int:
        """Number of moduli that hold the coefficients of a message and of a product, with a sign
        and errors.
        """
        bits = max(self.scale_bits, 2 * self.scale_bits - log2(self.moduli[-1])) + 3
        limbs = next(
            (count for count in range(1, self.level) if log2(prod(self.moduli[:count])) >= bits),
            self.level,
        )
        return max(CRT_LIMBS, limbs)

    def error_bound(self) -> float:
        """Return a bound of the error of a product of messages of at most 1.

        The noise bounds of the 2017 paper, section 3.4, with a factor for the fast base conversion
        of digits.
        """
        root, scale = sqrt(self.size), 2.0**self.scale_bits
        weight = 2 * self.size / 3  # nonzero coefficients of the secret key, on average
        fresh = (
            8 * sqrt(2) * SIGMA * self.size
            + 6 * SIGMA * root
            + 16 * SIGMA * sqrt(weight * self.size)
        )
        widest = max(len(digit) for digit in self.digits)
        switched = 8 * SIGMA * self.size / sqrt(3) * len(self.digits) * widest
        rounded = sqrt(self.size / 3) * (3 + 8 * sqrt(weight))
        product = 2 * scale * fresh + fresh**2 + switched + (len(self.extension) + 1) * rounded
        return product / scale**2 + rounded * self.moduli[-1] / scale**2


class Scheme:
    """Keys for some parameters, and the operations that need them."""

    def __init__(self, parameters: Parameters, seed: int) -> None:
        """Generate the secret key, the public key and the key for multiplications."""
        self.parameters = parameters
        self.tables = Tables(parameters.all, parameters.size)
        self.random = np.random.default_rng(seed)
        moduli, count = parameters.all, len(parameters.moduli)
        self.secret = self.transformed(self.random.integers(-1, 2, parameters.size))
        mask = self.uniform(count)
        self.public = (
            self.sum(self.negated(self.product(mask, self.secret[:count])), self._error(count)),
            mask,
        )
        square = self.product(self.secret, self.secret)
        lift = [prod(parameters.extension) % q for q in moduli]
        self.key = np.zeros((len(parameters.digits), 2, len(moduli), parameters.size), np.uint64)
        for digit, own in enumerate(parameters.digits):
            factors = np.array([lift[i] if i in own else 0 for i in range(len(moduli))], np.uint64)
            mask = self.uniform(len(moduli))
            lifted = self.product(square, np.repeat(factors[:, None], parameters.size, axis=1))
            hidden = self.sum(
                self.negated(self.product(mask, self.secret)), self._error(len(moduli))
            )
            self.key[digit] = self.sum(hidden, lifted), mask

    # ---- messages

    def encode(self, message: Array) -> Array:
        """Return the coefficients of a message, rounded; message: size / 2 complex numbers of at
        most 1.
        """
        size = self.parameters.size
        values = np.concatenate([message, np.conj(message[::-1])])
        turn = np.exp(-1j * np.pi * np.arange(size) / size)
        coefficients = (np.fft.fft(values) / size * turn).real
        encoded: Array = np.rint(coefficients * 2.0**self.parameters.scale_bits).astype(np.int64)
        return encoded

    def decode(self, coefficients: Array, scale: float) -> Array:
        """Return the message of coefficients, which are floating-point numbers."""
        size = self.parameters.size
        turn = np.exp(1j * np.pi * np.arange(size) / size)
        return np.fft.ifft(coefficients * turn)[: size // 2] * size / scale

    def encrypt(self, coefficients: Array) -> tuple[Array, Array]:
        """Encrypt a message with the public key."""
        count = len(self.parameters.moduli)
        mask = self.transformed(self.random.integers(-1, 2, self.parameters.size), count)
        first = self.sum(self.product(mask, self.public[0]), self._error(count))
        second = self.sum(self.product(mask, self.public[1]), self._error(count))
        return self.sum(first, self.transformed(coefficients, count)), second

    def decrypt(self, parts: tuple[Array, Array]) -> Array:
        """Return the coefficients of a message as floating-point numbers."""
        from pidcomm_studies.apps import _apps

        count = min(len(parts[0]), self.parameters.decrypted_limbs)
        value = self.sum(parts[0][:count], self.product(parts[1][:count], self.secret[:count]))
        limbs = _apps.ntt_inverse(
            value, self.tables.inverse[:count].copy(), self.tables.scales[:count].copy()
        )
        moduli = self.parameters.moduli[:count]
        modulus = prod(moduli)
        weights = [modulus // q * pow(modulus // q, -1, q) for q in moduli]
        coefficients = (
            sum(limb.astype(object) * weight for limb, weight in zip(limbs, weights, strict=True))
            % modulus
        )
        return np.array(
            [
                float(coefficient - modulus if 2 * coefficient > modulus else coefficient)
                for coefficient in coefficients
            ]
        )

    # ---- arithmetic modulo the first moduli

    def transformed(self, coefficients: Array, count: int | None = None) -> Array:
        """Return the transforms of signed coefficients modulo the first `count` moduli, or all."""
        from pidcomm_studies.apps import _apps

        moduli = self.parameters.all[:count]
        limbs = np.stack([np.mod(coefficients, q).astype(np.uint64) for q in moduli])
        return _apps.ntt_forward(limbs, self.tables.forward[: len(moduli)].copy())

    def product(self, a: Array, b: Array) -> Array:
        """Multiply element by element."""
        from pidcomm_studies.apps import _apps

        return _apps.ntt_multiply(a, b, self.tables.moduli[: len(a)].copy())

    def sum(self, a: Array, b: Array) -> Array:
        """Add."""
        moduli = self.tables.moduli[: len(a), None]
        added = a + b
        return np.where(added >= moduli, added - moduli, added)

    def negated(self, a: Array) -> Array:
        """Return -a."""
        return np.where(a == 0, a, self.tables.moduli[: len(a), None] - a)

    def uniform(self, count: int) -> Array:
        """Return random elements modulo the first `count` moduli."""
        return np.stack(
            [
                self.random.integers(0, q, self.parameters.size, np.uint64)
                for q in self.parameters.all[:count]
            ]
        )

    def _error(self, count: int) -> Array:
        return self.transformed(
            np.rint(self.random.normal(0, SIGMA, self.parameters.size)).astype(np.int64), count
        )


def _check_level(level: int) -> None:
    if level < 1:
        raise ArgumentError(
            f"level {level}: a multiplication drops a modulus, so the level must be at least 1"
        )
