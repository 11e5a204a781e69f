"""Call the public Python API with right and wrong arguments of every kind.

A call may raise pidcomm.Error or dpuemu.Error, and TypeError for an unknown option. Any other
exception, a crash and a call that does not return are findings.
"""

from __future__ import annotations

import faulthandler
import fractions
import inspect
import math
import os
import pathlib
import random
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
from attack import Attack

import dpuemu
import pidcomm
import pidcomm.model
from pidcomm.bench import osu

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "examples" / "pe" / "matrix_vector.c"
SECONDS = 60  # a call returns within this time
PES = 8
SOURCE = (
    "#include <mram.h>\n__host int value; __host long values[4];\nint main(void) { return 0; }\n"
)
# For the package's own use, the end of an object, and a call that waits for five minutes.
LEFT_OUT = {"carry_out", "or_refuse", "close", "run_switch"}
POOL_BYTES = 1 << 20


class Text(str):
    """A str of a subclass."""


def make_strange() -> list[Callable[[], Any]]:
    """Return makers of arguments that few parameters expect."""
    values = [
        *(
            None,
            True,
            False,
            0,
            1,
            -1,
            7,
            8,
            2**31,
            2**32,
            2**63,
            2**64,
            -(2**64),
            10**400,
            0.0,
            1.5,
            -0.0,
            1e308,
            2j,
        ),
        *(
            math.nan,
            math.inf,
            fractions.Fraction(8),
            "",
            "1",
            "11",
            "x",
            "10\0",
            "\ud800",
            "é" * 1000,
            "1" * 100000,
        ),
        *(
            b"",
            b"10",
            (),
            (8,),
            ("1",),
            (None,),
            frozenset(),
            range(8),
            object(),
            int,
            len,
            NotImplemented,
            ...,
        ),
        *(
            pathlib.Path("/"),
            pathlib.Path("no such file"),
            Text("1"),
            np.int8(8),
            np.uint64(2**64 - 1),
            np.float64(8),
        ),
        *(
            np.str_("1"),
            np.bool_(True),
            np.datetime64("2020-01-01"),
            np.dtype("i4"),
            np.dtype("O"),
            np.dtype(">i4"),
        ),
        *(
            "i4",
            "float64",
            "V8",
            "i4,i4",
            "U3",
            "M8[s]",
            "sum",
            "tile",
            "auto",
            "avx2",
            "none",
            "alltoall",
            "isca24",
        ),
    ]
    return [
        *((lambda value=value: value) for value in values),
        *(
            list,
            dict,
            set,
            bytearray,
            lambda: [1, [2]],
            lambda: [[1.0] * 8] * PES,
            lambda: {"a": 1},
        ),
        *(
            lambda: bytearray(64),
            lambda: memoryview(b"8 bytes."),
            lambda: memoryview(bytearray(64))[::2],
        ),
        *(
            lambda: np.zeros(()),
            lambda: np.zeros((0, 8)),
            lambda: np.zeros((PES, 0)),
            lambda: np.zeros((PES, 3), "i1"),
        ),
        *(
            lambda: np.zeros((PES, 8), "O"),
            lambda: np.zeros((PES, 8), "c16"),
            lambda: np.zeros((PES, 8), ">i4"),
        ),
        *(
            lambda: np.zeros((PES, 16))[:, ::2],
            lambda: np.zeros((2, PES, 8)),
            lambda: np.zeros((PES, 8), "i4,i4"),
        ),
        *(
            lambda: np.ma.zeros((PES, 8)),
            lambda: np.asmatrix(np.zeros((PES, 8))),
            lambda: iter([8, 8]),
        ),
        *(lambda: (value for value in (8,)), lambda: np.broadcast_to(np.int32(1), (PES, 8))),
    ]


STRANGE = make_strange()
RIGHT: dict[str, list[Callable[[], Any]]] = {
    "bytes": [lambda: 64, lambda: 8 * PES, lambda: 0],
    "mask": [lambda: "1", lambda: "0", lambda: "11", lambda: "x", lambda: ("host", "x")],
    "dtype": [lambda: np.int32, lambda: "float64", lambda: np.dtype("u1")],
    "op": [lambda: "sum", lambda: "max"],
    "x": [lambda: np.ones((PES, 16), np.int32), lambda: np.ones((1, 16), np.int32)],
    "host": [lambda: np.ones((1, 16), np.int32), lambda: np.ones((PES, 16), np.int32)],
    "rows": [lambda: np.ones((PES, 64), np.uint8)],
    "values": [lambda: 1, lambda: np.ones((PES, 1), np.int32), lambda: np.ones(2, np.int32)],
    "count": [lambda: 4, lambda: 16],
    "collective": [lambda: "allreduce", lambda: "gather"],
    "name": [lambda: "value", lambda: "values"],
    "machine": [lambda: "isca24", lambda: pidcomm.model.load_machine("emulated-host")],
    "shape": [lambda: (PES,), lambda: (4, 2)],
    "lengths": [lambda: PES, lambda: 4],
    "first": [lambda: 0, lambda: 8],
    "program": [lambda: str(PROGRAM)],
    "pes": [lambda: PES],
    "pe": [lambda: 0, lambda: 7],
    "hosts": [lambda: 1, lambda: 1, lambda: 2],
    "pool_bytes": [lambda: POOL_BYTES],
    "timeout": [lambda: 0.01],
    "switch": [lambda: False],
    "sizes": [lambda: (8, 64), lambda: [24]],
    "iters": [lambda: 1],
    "ppn": [lambda: 1],
}
OPTIONS = ["technique", "isa", "threads", "coherence", "scratch", "strange"]
SMALL = [lambda: 0, lambda: 4096, lambda: 8]


def open_pool(
    name: Any = None,
    *,
    number: Any = 0,
    hosts: Any = 1,
    pool_bytes: Any = POOL_BYTES,
    path: Any = None,
    switch: Any = False,
    coherence: Any = "none",
    timeout: Any = 0.01,
) -> None:
    """Open and close a pool. No attack on the address: any number may be an address."""
    settings = {"bytes": pool_bytes, "path": path, "switch": switch, "coherence": coherence}
    pidcomm.pool.Pool(name, host=number, hosts=hosts, timeout=timeout, **settings).close()


def run_switch(
    name: Any = None, *, hosts: Any = 1, pool_bytes: Any = POOL_BYTES, timeout: Any = 0.01
) -> None:
    """Run the switch of a pool that no host opens."""
    pidcomm.pool.run_switch(name, hosts=hosts, bytes=pool_bytes, timeout=timeout)


def measure_osu(
    collective: Any = "allreduce",
    transport: Any = "pool",
    hosts: Any = 1,
    ppn: Any = 1,
    sizes: Any = (8,),
    pes: Any = 0,
    iters: Any = 1,
) -> None:
    """Measure latencies."""
    osu.measure([osu.OsuCase(collective, transport, hosts, ppn, sizes, pes, iters=iters)])


class World:
    """The objects whose methods are called."""

    def __init__(self) -> None:
        """Allocate PEs and load a program."""
        self.pes = pidcomm.allocate(pes=PES)
        self.pes.load(SOURCE)
        self.cube = self.pes.hypercube(PES)
        self.symbol = self.pes.symbol("value")
        self.pool = pidcomm.pool.Pool(
            f"api{os.getpid()}", host=0, hosts=1, bytes=POOL_BYTES, switch=True
        )
        self.pool.allocate(8192)
        connected = pidcomm.pool.Pool(f"hosts{os.getpid()}", host=0, hosts=1, bytes=POOL_BYTES)
        self.over_hosts = pidcomm.hosts.connect(self.cube, connected)
        RIGHT.update(local=[lambda: self.cube], comm=[lambda: self.pool])

    def calls(self) -> list[tuple[str, Callable[..., Any]]]:
        """Return the names and the functions of all calls."""
        named_calls: list[tuple[str, Callable[..., Any]]] = [
            (call.__name__, call) for call in (open_pool, run_switch, measure_osu)
        ]
        for name, holder in (
            *(
                ("pidcomm", pidcomm),
                ("model", pidcomm.model),
                ("dpuemu", dpuemu),
                ("pes", self.pes),
            ),
            *(("cube", self.cube), ("arrays", self.cube.arrays), ("symbol", self.symbol)),
            *(("hosts", pidcomm.hosts), ("pool", pidcomm.pool), ("opened pool", self.pool)),
            *(("over_hosts", self.over_hosts), ("over_hosts arrays", self.over_hosts.arrays)),
        ):
            for attribute in getattr(holder, "__all__", dir(holder)):
                if isinstance(getattr(type(holder), attribute, None), property):
                    continue  # some properties of symbols raise errors
                value = getattr(holder, attribute)
                if (
                    not attribute.startswith("_")
                    and attribute not in LEFT_OUT
                    and inspect.isroutine(value)
                ):
                    named_calls.append((f"{name}.{attribute}", value))
        return named_calls


def argument(name: str, choices: random.Random) -> Any:
    """Return a right or a strange value of a parameter."""
    makers = RIGHT.get(name, SMALL) if choices.random() < 0.75 else STRANGE
    return choices.choice(makers)()


def arguments_of(
    call: Callable[..., Any], choices: random.Random
) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments that fit the signature of a call."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    are_all_given = True  # up to this parameter
    for parameter in inspect.signature(call).parameters.values():
        is_needed = parameter.default is parameter.empty
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += [
                argument(parameter.name, choices)
                for _ in range(choices.choice((0, 1, 1, 1, 2, 20)))
            ]
        elif parameter.kind is parameter.VAR_KEYWORD:
            for option in OPTIONS:
                if choices.random() < 0.05:
                    named[option] = choices.choice(STRANGE)()
        elif parameter.kind is parameter.KEYWORD_ONLY:
            if is_needed or choices.random() < 0.3:
                named[parameter.name] = argument(parameter.name, choices)
        elif is_needed or (are_all_given and choices.random() < 0.3):
            positional.append(argument(parameter.name, choices))
        else:
            are_all_given = False
    return positional, named


def outcome(call: Callable[..., Any], choices: random.Random) -> tuple[str, str]:
    """Make one call; return the place of an exception that is not documented and a sentence, or
    empty strs.
    """
    positional, named = arguments_of(call, choices)
    try:
        result = call(*positional, **named)
        if hasattr(result, "__enter__"):
            with result:
                pass
        repr(result)
    except (pidcomm.Error, dpuemu.Error) as error:
        return ("", "") if str(error) else (repr(call), f"an empty {type(error).__name__}")
    except TypeError as error:
        if "strange" not in named:
            return described(error, positional, named)
    except Exception as error:
        return described(error, positional, named)
    return "", ""


def described(error: Exception, positional: list[Any], named: dict[str, Any]) -> tuple[str, str]:
    """Return the place of and a sentence about an exception and the arguments of the call."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{frame.filename}:{frame.lineno}"
    arguments = [f"{value!r:.60}" for value in positional] + [
        f"{key}={value!r:.60}" for key, value in named.items()
    ]
    text = f"{type(error).__name__}: {error!s:.120} at {place} from ({', '.join(arguments)})"
    return place, text.encode(errors="backslashreplace").decode()


def main() -> None:
    """Make calls until the time is over."""
    attack = Attack()
    faulthandler.enable()
    sys.set_int_max_str_digits(0)
    world = World()
    os.chdir(attack.folder)  # for the files of pools
    seen: set[str] = set()
    for number in attack.numbers():
        choices = attack.random(number)
        if number % 200 == 0 or world.pes.is_freed:
            pidcomm.model.use_machine(None)
            world.pes.free()
            world = World()
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        name, call = choices.choice(world.calls())
        place, problem = outcome(call, choices)
        if problem and place not in seen:
            seen.add(place)
            attack.find(f"{name} raised {problem}", number=number)
    faulthandler.cancel_dump_traceback_later()
    attack.finish()


if __name__ == "__main__":
    main()
