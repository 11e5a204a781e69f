"""Define the commands, and show each stop."""

from __future__ import annotations

import os
from typing import Any

import gdb

from .core import open_core_file, write_core
from .layout import REGISTERS
from .state import Run, State, parse_pe, pe_name
from .tasklets import Chosen, current, preserved, select_tasklet, unwinder


class TaskletCommand(gdb.Command):  # type: ignore[misc]
    """Show the frames of another tasklet of the PE: tasklet NUMBER.

    `backtrace`, `frame` and `info locals` then show this tasklet, until the program continues.
    """

    def __init__(self) -> None:
        super().__init__("tasklet", gdb.COMMAND_STACK)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Select a tasklet, or name the current one."""
        pe, run, tasklet = current()
        if run is None:
            raise gdb.GdbError(f"PE {pe_name(pe)} does not run")
        number = tasklet if not argument else int(argument) if argument.isdecimal() else None
        if number is None:
            raise gdb.GdbError("use tasklet NUMBER")
        print(f"PE {pe_name(pe)}, tasklet {number} {select_tasklet(run, number)}")
        if run.at["is_code"]:
            for begin in range(0, REGISTERS, 8):
                row = range(begin, begin + 8)
                print(*(f"r{i}={run.register(number, i):#x}" for i in row))


class InfoTaskletsCommand(gdb.Command):  # type: ignore[misc]
    """List the tasklets of the PE: the state, what each waits for, and its source line."""

    def __init__(self) -> None:
        super().__init__("info tasklets", gdb.COMMAND_STATUS)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Print a line per tasklet."""
        pe, run, own = current()
        if run is None:
            raise gdb.GdbError(f"PE {pe_name(pe)} does not run")
        print(f"PE {pe_name(pe)}")
        for tasklet in range(run.tasklets):
            if run.is_unused(tasklet):
                continue
            mark = "*" if tasklet == own else " "
            with preserved():
                print(f"{mark} {tasklet:2} {select_tasklet(run, tasklet)}")


class PeCommand(gdb.Command):  # type: ignore[misc]
    """Name the PE and the tasklet at this stop, or choose a PE: pe NUMBER or pe RANK.CHIP.BANK."""

    def __init__(self) -> None:
        super().__init__("pe", gdb.COMMAND_STATUS)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Choose a PE, and list the PEs that run."""
        if argument:
            pe = parse_pe(argument)
            State().wram(pe)
            unwinder.reset()
            Chosen.pe = pe
        pe, run, tasklet = current()
        doing = f", tasklet {tasklet}" if tasklet is not None else "" if run else " does not run"
        print(f"PE {pe_name(pe)}{doing}")
        others = [pe_name(one.pe) for one in State().runs() if one.pe not in (None, pe)]
        if others and not argument:
            print("these also run:", ", ".join(others))


class NumberFunction(gdb.Function):  # type: ignore[misc]
    """Return the number of the PE or the tasklet that the thread executes, or -1: for `if`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.is_pe = name == "_pe"

    def invoke(self) -> int:
        """Return the number."""
        try:
            stack = int(gdb.newest_frame().read_register("rsp"))
            for run in State().runs():
                tasklet = run.tasklet_of_stack(stack)
                if tasklet is not None and run.pe is not None:
                    return run.pe if self.is_pe else tasklet
        except (gdb.error, gdb.GdbError):  # the host has not loaded the library yet
            pass
        return -1


TaskletCommand()
InfoTaskletsCommand()
PeCommand()
NumberFunction("_pe")
NumberFunction("_tasklet")


# --- Stops


FAULT = "__dpuemu_debug_fault"  # src/machine/debugger.cpp


class FaultBreakpoint(gdb.Breakpoint):  # type: ignore[misc]
    """Stops where the emulator ends a PE with a fault."""

    def __init__(self) -> None:
        super().__init__(FAULT, internal=True)
        self.silent = True


def show_stop(event: Any) -> None:
    """Name the PE and the tasklet at a stop, and select its frame; write the core file, if any."""
    unwinder.reset()
    Chosen.pe = Chosen.fault = None
    try:
        frame = gdb.newest_frame()
        if frame.name() == FAULT:
            arguments = [int(frame.read_register(name)) for name in ("rdi", "rsi", "rdx", "rcx")]
            run, number = Run(arguments[0]), arguments[1]
            Chosen.fault, Chosen.is_cause = (run, number), bool(arguments[3])
            text = gdb.lookup_type("char").pointer()
            reason = gdb.Value(arguments[2]).cast(text).string(errors="replace")
            print(f"PE {pe_name(run.pe or 0)}, tasklet {number}: {reason}")
            select_tasklet(run, number)
            if not run.at["is_code"]:
                gdb.execute("frame")
        else:
            pe, _, tasklet = current()
            print(f"PE {pe_name(pe)}" + (f", tasklet {tasklet}" if tasklet is not None else ""))
    except gdb.GdbError:
        return  # no PE runs
    path = os.environ.pop("DPUEMU_DEBUG_CORE", "")
    if path and event is not None:
        try:
            write_core(path, current()[0])
        except gdb.GdbError as error:
            print(error)


def open_core(path: str) -> None:
    """Open a core file, and name its PE and tasklet."""
    open_core_file(path)
    show_stop(None)


def stop_at_faults(event: Any) -> None:
    """Set the breakpoint once GDB knows the function."""
    try:
        gdb.parse_and_eval(f"&{FAULT}")
    except gdb.error:
        return
    gdb.events.new_objfile.disconnect(stop_at_faults)
    FaultBreakpoint()


located: set[int] = set()  # the breakpoints for which GDB has found code


def note_place(breakpoint: Any) -> None:
    """Note a breakpoint for which GDB has found code."""
    if not breakpoint.pending:
        located.add(breakpoint.number)


def report_breakpoints(event: Any) -> None:
    """Print a line for each breakpoint that was never hit, at the end of the program."""
    for one in gdb.breakpoints():
        if one.number > 0 and one.type == gdb.BP_BREAKPOINT and one.hit_count == 0:
            cause = (
                "the program did not execute it, or not in the chosen PE and tasklet"
                if one.number in located
                else "no program has this place: check its name, and compile PE programs with -g"
            )
            print(
                f"breakpoint {one.number} at {one.location} was never hit: {cause};"
                " gdb follows one process"
            )


gdb.events.breakpoint_created.connect(note_place)
gdb.events.breakpoint_modified.connect(note_place)
gdb.events.exited.connect(report_breakpoints)
gdb.events.new_objfile.connect(stop_at_faults)
gdb.events.stop.connect(show_stop)
RESUMING = "continue step next stepi nexti finish until advance run jump"
for name in RESUMING.split():
    gdb.execute(f"define hook-{name}\npython in_gdb.tasklets.unwinder.reset()\nend")
