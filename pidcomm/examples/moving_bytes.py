"""Move bytes as the host does, in NumPy; check the result against definitions, the library and an
emulated rank.

docs/design.md explains the ideas. Here a region is an array of bytes, laid out as the host sees the
ranks in memory.
"""

import ctypes
import functools
import itertools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpuemu
import pidcomm

Bytes = NDArray[np.uint8]
Lines = NDArray[np.uint64]  # (..., 8): a line is 8 words of 64 bits

RANK_BYTES = 2 << 20  # the part of a rank's region that holds two runs of every bank


# ---- the address map


# [address]
def line_offset(bank: Any, m: Any) -> Any:
    """Return where the line of MRAM byte m of a bank begins in the region of its rank."""
    run = m >> 13
    chunk = (run & ~0x1FE) | (run >> 1 & 0xFE) | (run & 2) << 7
    return (bank % 4 << 18) + (bank // 4 << 6) + (chunk << 20) + (m % 8192 & ~7) * 16


# [end]


def byte_offset(lane: Any, bank: Any, m: Any) -> Any:
    """Return the offset in a rank's region of MRAM byte m of one PE."""
    return line_offset(bank, m) + 8 * (m % 8) + lane


@functools.cache
def places(pes: int, size: int) -> NDArray[np.int64]:
    """Return the offset in the regions of byte m of PE p, as an array (pes, size)."""
    pe, m = np.indices((pes, size))
    offsets: NDArray[np.int64] = pe // 64 * RANK_BYTES + byte_offset(pe % 8, pe // 8 % 8, m)
    return offsets


def region_of(rows: Bytes) -> Bytes:
    """Return the regions of all ranks, one after the other, if row p is the MRAM of PE p."""
    pes, size = rows.shape
    assert pes % 8 == 0
    assert size <= 16384
    region = np.zeros(-(-pes // 64) * RANK_BYTES, np.uint8)
    region[places(pes, size)] = rows
    return region


def rows_of(region: Bytes, pes: int, size: int) -> Bytes:
    """Return the MRAM of each PE: the inverse of region_of."""
    return region[places(pes, size)]


def word_indices(eg: int, byte: int, words: int) -> NDArray[np.int64]:
    """Return the indices (words, 8) of the 64-bit words in the lines of an entangled group from
    an MRAM byte on.
    """
    at = eg // 8 * RANK_BYTES + line_offset(eg % 8, byte + 8 * np.arange(words))
    indices: NDArray[np.int64] = at[:, None] // 8 + np.arange(8)
    return indices


def lines_at(region: Bytes, eg: int, byte: int, words: int) -> Lines:
    """Load a stream of lines."""
    return region.view(np.uint64)[word_indices(eg, byte, words)]


def store_lines(region: Bytes, eg: int, byte: int, lines: Lines) -> None:
    """Store a stream of lines."""
    region.view(np.uint64)[word_indices(eg, byte, len(lines))] = lines


# ---- line kernels


def domain_transfer(lines: Lines) -> Lines:
    """Turn PIM order into host order, or host order into PIM order."""
    beats = np.ascontiguousarray(lines).view(np.uint8).reshape(*lines.shape, 8)
    return np.ascontiguousarray(np.swapaxes(beats, -1, -2)).view(np.uint64)[..., 0]


LANES_WITH = [
    np.uint64(0xFF00FF00FF00FF00),
    np.uint64(0xFFFF0000FFFF0000),
    np.uint64(0xFFFFFFFF00000000),
]


def butterfly(a: Any, b: Any, bit: int) -> tuple[Any, Any]:
    """Swap high lanes of a with low lanes of b, in PIM order."""
    high, shift = LANES_WITH[bit], np.uint64(8 << bit)
    return (a & ~high) | (b << shift & high), (b & high) | (a >> shift & ~high)


def transpose_tile(lines: list[Lines], lane_mask: int) -> list[Lines]:
    """Exchange the selected lane bits of 2^k lines in PIM order with the bits of the line
    number.
    """
    lines, step = list(lines), 1
    for bit in range(3):
        if lane_mask >> bit & 1:
            for i in range(len(lines)):
                if not i & step:
                    lines[i], lines[i | step] = butterfly(lines[i], lines[i | step], bit)
            step *= 2
    return lines


def swap_words(lines: Lines, bit: int) -> Lines:
    """Swap lanes l and l ^ 2^bit. Host order: lane l is word l."""
    return np.ascontiguousarray(lines[:, np.arange(8) ^ 1 << bit])


def butterfly_words(a: Lines, b: Lines, bit: int) -> tuple[Lines, Lines]:
    """Do the same as butterfly, in host order."""
    high = (np.arange(8) >> bit & 1).astype(bool)
    return np.where(high, swap_words(b, bit), a), np.where(high, b, swap_words(a, bit))


def deposit(value: int, mask: int) -> int:
    """Put the bits of value at the set bits of mask."""
    bits = [bit for bit in range(3) if mask >> bit & 1]
    return sum((value >> i & 1) << bit for i, bit in enumerate(bits))


def replicate(lines: Lines, lane_mask: int, t: int) -> Lines:
    """Give every lane the bytes of the lane of its group whose selected bits are t."""
    source = [lane & ~lane_mask | deposit(t, lane_mask) for lane in range(8)]
    beats = np.ascontiguousarray(lines).view(np.uint8).reshape(-1, 8)
    return np.ascontiguousarray(beats[:, source]).view(np.uint64).reshape(lines.shape)


# ---- hypercubes


def lane_split(shape: tuple[int, ...], mask: str) -> tuple[int, list[int], list[int]]:
    """Return the lane mask, the entangled groups of one set in member order, and the first group
    of every set.
    """
    lane_mask, stride, egs = 0, 1, {"1": [0], "0": [0]}
    for length, selected in zip(shape, mask, strict=True):
        room = max(8 // stride, 1) if stride < 8 else 1
        inside = min(length, room)
        assert room % inside == 0, "no lane split"
        assert length % inside == 0, "no lane split"
        lane_mask |= (inside - 1) * stride if selected == "1" else 0
        step = max(stride // 8, 1)
        egs[selected] = [e + i * step for i in range(length // inside) for e in egs[selected]]
        stride *= length
    return lane_mask, egs["1"], egs["0"]


# ---- the collectives: size, src and dst are bytes


def alltoall(
    region: Bytes, shape: tuple[int, ...], mask: str, size: int, src: int, dst: int
) -> None:
    """For every pair of entangled groups of a set, transpose a tile."""
    lane_mask, members, sets = lane_split(shape, mask)
    ways = 1 << lane_mask.bit_count()
    block = size // (ways * len(members))
    for first in sets:
        for j, b in enumerate(members):  # destination
            for i, a in enumerate(members):  # source
                tile = [
                    lines_at(region, first + a, src + (j * ways + t) * block, block // 8)
                    for t in range(ways)
                ]
                for t, lines in enumerate(transpose_tile(tile, lane_mask)):
                    store_lines(region, first + b, dst + (i * ways + t) * block, lines)


def allgather(
    region: Bytes, shape: tuple[int, ...], mask: str, size: int, src: int, dst: int
) -> None:
    """Make 2^k lines of every line, and store each at every entangled group of the set."""
    lane_mask, members, sets = lane_split(shape, mask)
    ways = 1 << lane_mask.bit_count()
    block = size // (ways * len(members))
    for first in sets:
        for i, a in enumerate(members):
            lines = lines_at(region, first + a, src, block // 8)
            for t in range(ways):
                for b in members:
                    store_lines(
                        region,
                        first + b,
                        dst + (i * ways + t) * block,
                        replicate(lines, lane_mask, t),
                    )


def allreduce(
    region: Bytes, shape: tuple[int, ...], mask: str, size: int, src: int, dst: int, dtype: Any
) -> None:
    """Add the lines of the set, then the lanes of each group, in host order."""
    lane_mask, members, sets = lane_split(shape, mask)
    for first in sets:
        total: Any = 0
        for a in members:
            total = total + domain_transfer(lines_at(region, first + a, src, size // 8)).view(dtype)
        for bit in range(3):
            if lane_mask >> bit & 1:
                total = total + swap_words(total.view(np.uint64), bit).view(dtype)
        lines = domain_transfer(total.view(np.uint64))
        for b in members:
            store_lines(region, first + b, dst, lines)


def reduce_scatter(
    region: Bytes, shape: tuple[int, ...], mask: str, size: int, src: int, dst: int, dtype: Any
) -> None:
    """Add 2^k sums over the set for every destination, transpose them as a tile, add the lines
    of the tile.
    """
    lane_mask, members, sets = lane_split(shape, mask)
    bits = [bit for bit in range(3) if lane_mask >> bit & 1]
    ways = 1 << len(bits)
    block = size // (ways * len(members))
    for first in sets:
        for j, b in enumerate(members):
            sums = []
            for t in range(ways):
                streams = [
                    lines_at(region, first + a, src + (j * ways + t) * block, block // 8)
                    for a in members
                ]
                sums.append(
                    np.sum(
                        [domain_transfer(lines).view(dtype) for lines in streams], 0, dtype
                    ).view(np.uint64)
                )
            for n, bit in enumerate(bits):
                for i in range(ways):
                    if not i >> n & 1:
                        sums[i], sums[i | 1 << n] = butterfly_words(sums[i], sums[i | 1 << n], bit)
            total = [lines.view(dtype) for lines in sums]
            while len(total) > 1:
                total = [total[i] + total[i + 1] for i in range(0, len(total), 2)]
            store_lines(region, first + b, dst, domain_transfer(total[0].view(np.uint64)))


def tile_to_rows(region: Bytes, eg: int, byte: int) -> Bytes:
    """Return 64 bytes of each of the 8 PEs of an entangled group, as gather makes them: (8, 64)."""
    lines = list(domain_transfer(lines_at(region, eg, byte, 8))[:, None])
    for bit in range(3):
        for i in range(8):
            if not i >> bit & 1:
                lines[i], lines[i | 1 << bit] = butterfly_words(lines[i], lines[i | 1 << bit], bit)
    return np.concatenate(lines).view(np.uint8)


# ---- the definitions


def members_of(shape: tuple[int, ...], mask: str) -> NDArray[np.int64]:
    """Return PE numbers [group][member], from the coordinates alone."""
    pes = np.arange(np.prod(shape)).reshape(shape[::-1])  # last axis slowest
    order = [len(shape) - 1 - i for s in "01" for i in reversed(range(len(shape))) if mask[i] == s]
    group_pes = int(np.prod([n for n, s in zip(shape, mask, strict=True) if s == "1"]))
    return pes.transpose(order).reshape(-1, group_pes)


def defined(name: str, x: Bytes, shape: tuple[int, ...], mask: str, dtype: Any) -> Bytes:
    """Return the result at each PE according to the definition; x: (pes, bytes)."""
    results: dict[int, Bytes] = {}
    for group in members_of(shape, mask):
        n = len(group)
        if name == "alltoall":
            got = x[group].reshape(n, n, -1).transpose(1, 0, 2).reshape(n, -1)
        elif name == "allgather":
            got = np.tile(x[group].reshape(-1), (n, 1))
        else:
            total = x[group].view(dtype).sum(0, dtype=dtype).view(np.uint8)
            got = np.tile(total, (n, 1)) if name == "allreduce" else total.reshape(n, -1)
        results.update(zip(group, got, strict=True))
    return np.array([results[pe] for pe in range(len(x))])


# ---- the comparisons


def check_the_map(random: np.random.Generator, emulator: ctypes.CDLL) -> None:
    """Compare the address map with the emulator's."""
    for _ in range(2000):
        lane, bank, m = (
            int(random.integers(8)),
            int(random.integers(8)),
            int(random.integers(64 << 20)),
        )
        offset = byte_offset(lane, bank, m)
        assert offset == emulator.dpuemu_region_offset(lane, bank, ctypes.c_uint64(m))
        assert not offset >> 17 & 1  # the control interface


def check_the_pieces(random: np.random.Generator) -> None:
    """Compare the line kernels with literal bytes, and the paper's PE-assisted reordering with
    alltoall.
    """
    # Beat r is r r r r r r r r.
    example = np.arange(8, dtype=np.uint64) * np.uint64(0x0101010101010101)
    assert (domain_transfer(example) == 0x0706050403020100).all()
    a, b = np.uint64(0xA7A6A5A4A3A2A1A0), np.uint64(0xB7B6B5B4B3B2B1B0)
    assert butterfly(a, b, 1) == (0xB5B4A5A4B1B0A1A0, 0xB7B6A7A6B3B2A3A2)
    assert butterfly(*butterfly(a, b, 1), 1) == (a, b)
    # 4 lines, lane bits 0 and 2: byte (line t, lane l) is 16 t + l.
    tile = [np.frombuffer(bytes(16 * t + lane for lane in range(8)), np.uint64) for t in range(4)]
    assert transpose_tile(tile, 0b101)[1].tobytes().hex(" ") == "01 11 03 13 21 31 23 33"
    assert lane_split((32, 32), "10") == (0b111, [0, 1, 2, 3], list(range(0, 128, 4)))
    assert lane_split((4, 4, 2), "101") == (0b011, [0, 2], [0, 1])

    # [lane][block]: one entangled group, k = 3.
    words = random.integers(1 << 62, size=(8, 8), dtype=np.uint64)
    lane = np.arange(8)
    slots = np.array([words[c, (c + lane) % 8] for c in lane])  # the PE in lane c, before
    # The host moves line s by s lanes.
    moved = np.stack([np.roll(slots[:, s], s) for s in lane], axis=1)
    result = np.array([moved[c, (c - lane) % 8] for c in lane])  # the PE in lane c, after
    assert (result == words.T).all()


def check_the_collectives(random: np.random.Generator) -> int:
    """Compare every collective with its definition and with the library; return the number of
    cases.
    """
    cases = 0
    src, dst, mram = 8, 8192 - 64, 9216  # the destination crosses the end of a run
    for shape in [(8, 2), (4, 4, 2), (16, 8), (24, 2)]:
        pes = int(np.prod(shape))
        machine = pidcomm.allocate(pes=pes)
        cube = machine.hypercube(*shape)
        for mask in map("".join, itertools.product("01", repeat=len(shape))):
            n = members_of(shape, mask).shape[1]
            size = n * 8 * max(1, 1024 // (n * 8) // 3 * 2)
            for move in (alltoall, allgather, allreduce, reduce_scatter):
                name = move.__name__
                x = random.integers(
                    256, size=(pes, size // n if name == "allgather" else size), dtype=np.uint8
                )
                want = defined(name, x, shape, mask, np.int32)

                memory = np.zeros((pes, mram), np.uint8)
                memory[:, src : src + x.shape[1]] = x
                region = region_of(memory)
                reduces = "reduce" in name
                move(region, shape, mask, size, src, dst, *([np.int32] if reduces else []))
                memory[:, dst : dst + want.shape[1]] = want
                assert (rows_of(region, pes, mram) == memory).all()  # nothing else has changed

                cube.write(x, offset=src)
                operator = {"op": "sum"} if reduces else {}
                getattr(cube, name)(mask, bytes=size, src=src, dst=dst, dtype=np.int32, **operator)
                assert (cube.read(count=want.shape[1], dtype=np.uint8, offset=dst) == want).all()
                cases += 1

        x = random.integers(256, size=(pes, 64), dtype=np.uint8)
        region = region_of(x)
        assert all(
            (tile_to_rows(region, eg, 0) == x[8 * eg : 8 * eg + 8]).all() for eg in range(pes // 8)
        )
        machine.free()
    return cases


class DpuSet(ctypes.Structure):
    """A set of ranks, which is struct dpu_set_t."""

    _fields_ = [
        ("kind", ctypes.c_uint64),
        ("nr_ranks", ctypes.c_uint64),
        ("ranks", ctypes.POINTER(ctypes.c_void_p)),
    ]


class RankAccess(ctypes.Structure):
    """The region of a rank, which is dpuemu_rank_access_t."""

    _fields_ = [
        ("base", ctypes.c_void_p),
        ("size_bytes", ctypes.c_uint64),
        ("numa_node", ctypes.c_int),
        ("enabled", ctypes.c_uint64),
    ]


def check_the_rank(random: np.random.Generator, emulator: ctypes.CDLL) -> None:
    """Compare an alltoall here, line by line, with the region of an emulated rank after the
    library's alltoall.
    """
    library = ctypes.CDLL(str(next(Path(pidcomm.__file__).parent.glob("libpidcomm.so*"))))
    shape, mask, size, mram = (4, 4, 2), "101", 8 * 512, 16384
    pe_set, cube, access = DpuSet(), ctypes.c_void_p(), RankAccess()
    assert emulator.dpu_alloc(64, None, ctypes.byref(pe_set)) == 0
    assert (
        library.pidcomm_hypercube_create(
            pe_set, 3, (ctypes.c_uint32 * 3)(*shape), ctypes.byref(cube)
        )
        == 0
    )
    memory = np.zeros((32, mram), np.uint8)
    memory[:, :size] = random.integers(256, size=(32, size), dtype=np.uint8)
    start = memory.ctypes.data_as(ctypes.c_void_p)
    assert library.pidcomm_write(cube, ctypes.c_size_t(0), ctypes.c_size_t(mram), start) == 0
    for dst in (8192, 0):  # to another window, then in place
        windows = [ctypes.c_size_t(n) for n in (size, 0, dst)]
        assert (
            library.pidcomm_alltoall(cube, mask.encode(), *windows, pidcomm.TYPES["uint32"].code)
            == 0
        )
    image = region_of(memory)
    alltoall(image, shape, mask, size, 0, 8192)

    assert emulator.dpuemu_rank_acquire(ctypes.c_void_p(pe_set.ranks[0]), ctypes.byref(access)) == 0
    raw = np.ctypeslib.as_array((ctypes.c_uint8 * RANK_BYTES).from_address(access.base))
    for eg in range(4):
        for window in (8192, 0):
            assert (
                lines_at(raw, eg, window, size // 8) == lines_at(image, eg, 8192, size // 8)
            ).all()
    del raw
    emulator.dpuemu_rank_release(ctypes.c_void_p(pe_set.ranks[0]))
    library.pidcomm_hypercube_destroy(cube)
    emulator.dpu_free(pe_set)


emulator = ctypes.CDLL(str(next(Path(dpuemu.__file__).parent.glob("libdpuemu.so*"))))
emulator.dpuemu_region_offset.restype = ctypes.c_uint64
random = np.random.default_rng(1)
check_the_map(random, emulator)
check_the_pieces(random)
cases = check_the_collectives(random)
check_the_rank(random, emulator)
print(
    f"moving bytes in NumPy: {cases} collectives agree with the definitions, the library and an"
    " emulated rank"
)
