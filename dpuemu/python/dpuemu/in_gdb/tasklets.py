"""Select tasklets, and show their frames.

A tasklet that no thread executes has its registers in memory. An unwinder returns these registers
as those of the caller of the thread's innermost frame.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gdb
from gdb.unwinder import Unwinder, register_unwinder

from .layout import CODE, ENDED, RUNTIME, WORD
from .state import PE_ERROR, Run, State


class TaskletUnwinder(Unwinder):  # type: ignore[misc]
    """Returns the registers of the chosen tasklet as those of the caller of the thread's frame."""

    def __init__(self) -> None:
        super().__init__("dpuemu-tasklet")
        self.thread: Any = None
        self.stack = 0  # the stack pointer of the thread
        self.registers: dict[str, Any] = {}
        self.run: Run | None = None
        self.tasklet = 0

    def __call__(self, frame: Any) -> Any:
        """Unwind the thread's innermost frame, with the functions that are inline in it."""
        if not self.hides(frame):
            return None
        # GDB ends at frames that lie above their callers.
        identity = type("Identity", (), {})()
        identity.sp = self.registers["rsp"] - 2 * WORD
        identity.pc = frame.read_register("rip")
        info = frame.create_unwind_info(identity)
        for name, value in self.registers.items():
            info.add_saved_register(name, value)
        return info

    def hides(self, frame: Any) -> bool:
        """Return whether the frame is the thread's, not the chosen tasklet's."""
        if self.run is None or gdb.selected_thread().ptid != self.thread:
            return False
        return int(frame.read_register("rsp")) == self.stack

    def choose(self, run: Run, tasklet: int) -> None:
        """Let the callers of the thread's frame be those of a tasklet that no thread executes."""
        kind = gdb.lookup_type("long")
        registers = run.saved_registers(tasklet)
        values = {name: gdb.Value(value).cast(kind) for name, value in registers.items()}
        self.registers = {name: values[name] for name in values if name not in ("cs", "eflags")}
        self.thread = gdb.selected_thread().ptid
        self.stack = int(gdb.newest_frame().read_register("rsp"))
        self.run, self.tasklet = run, tasklet
        gdb.invalidate_cached_frames()

    def reset(self) -> None:
        """Show the frames of the threads again."""
        if self.run is not None:
            self.run = None
            gdb.invalidate_cached_frames()


unwinder = TaskletUnwinder()
register_unwinder(None, unwinder, replace=True)


class HideThreadFrame:
    """A frame filter that hides the thread's frames while a tasklet is chosen."""

    name, priority, enabled = "dpuemu-tasklet", 100, True

    def filter(self, frames: Any) -> Any:
        """Return the frames to show."""
        return (one for one in frames if not unwinder.hides(one.inferior_frame()))


gdb.frame_filters[HideThreadFrame.name] = HideThreadFrame()


def executed() -> Iterator[tuple[Any, Run, int]]:
    """Yield the threads that execute a tasklet, the selected one first; select each of them."""
    runs = list(State().runs())
    selected = gdb.selected_thread().num
    for thread in sorted(gdb.selected_inferior().threads(), key=lambda one: one.num != selected):
        thread.switch()
        frame = gdb.newest_frame()
        for _ in range(4):  # outside the frames of a signal handler
            stack = int(frame.read_register("rsp"))
            found = [(run, run.tasklet_of_stack(stack)) for run in runs]
            here = [(run, tasklet) for run, tasklet in found if tasklet is not None]
            if here:
                yield thread, *here[0]
            frame = frame.older()
            if here or frame is None:
                break


class Chosen:
    """The PE that the user has chosen, and the run and the tasklet of the fault at this stop."""

    pe: int | None = None
    fault: tuple[Run, int] | None = None
    is_cause = False


def state_text(run: Run, tasklet: int) -> str:
    """Return the state of a tasklet that no thread executes."""
    fault = Chosen.fault
    is_here = fault is not None and (fault[0].address, fault[1]) == (run.address, tasklet)
    return "in fault" if is_here and Chosen.is_cause else run.state(tasklet)


@contextmanager
def preserved() -> Iterator[None]:
    """Select the same thread, tasklet and frame at the end."""
    thread, level = gdb.selected_thread(), gdb.selected_frame().level()
    run, tasklet = unwinder.run, unwinder.tasklet
    try:
        yield
    finally:
        thread.switch()
        unwinder.reset()
        if run is not None:
            unwinder.choose(run, tasklet)
        frame = gdb.newest_frame()
        for _ in range(level):
            frame = frame.older() or frame
        frame.select()


def current() -> tuple[int, Run | None, int | None]:
    """Return the PE of the commands, its run, and the tasklet whose frames are shown, if any.

    The PE is the one that the user chose. Without a choice, it is the PE of the selected thread. If
    this thread runs no PE, it is any PE that runs.
    """
    if unwinder.run is not None and unwinder.run.pe is not None:
        return unwinder.run.pe, unwinder.run, unwinder.tasklet
    if gdb.selected_thread() is None:
        raise gdb.GdbError("the program does not run")
    if Chosen.fault is not None and Chosen.pe in (None, Chosen.fault[0].pe):
        run, tasklet = Chosen.fault
        return run.pe or 0, run, tasklet
    with preserved():
        places = list(executed())
    for thread, run, tasklet in places:
        if Chosen.pe in (None, run.pe) and run.pe is not None:
            return run.pe, run, tasklet if thread.num == gdb.selected_thread().num else None
    for run in sorted(State().runs(), key=lambda run: not run.computes()):
        if Chosen.pe in (None, run.pe) and run.pe is not None:
            return run.pe, run, None
    if Chosen.pe is None:
        raise gdb.GdbError(f"no PE runs now; {PE_ERROR}: pe NUMBER")
    return Chosen.pe, None, None


def is_of_program(frame: Any) -> bool:
    """Return whether a frame has a source line, not one of the runtime."""
    file = frame.find_sal().symtab
    return file is not None and frame.name() is not None and not file.filename.startswith(RUNTIME)


def select_source() -> Any:
    """Select the tasklet's innermost frame of the program, or else its innermost frame."""
    frame = gdb.newest_frame()
    while unwinder.hides(frame):
        frame = frame.older()
    first = frame
    while frame is not None and not is_of_program(frame):
        frame = frame.older()
    frame = frame or first
    frame.select()
    return frame


def place_text(frame: Any) -> str:
    """Return the function, the file and the line of a frame."""
    line = frame.find_sal()
    name = frame.name() or f"{frame.pc():#x}"
    if line.symtab is None:
        return name
    return f"{name} ({os.path.basename(line.symtab.filename)}:{line.line})"


def select_tasklet(run: Run, tasklet: int) -> str:
    """Select the innermost frame of a tasklet in its program; return its state and place."""
    if not 0 <= tasklet < run.tasklets:
        raise gdb.GdbError(f"tasklet {tasklet} is not from 0 to {run.tasklets - 1}")
    unwinder.reset()
    if run.at["is_code"]:
        return f"{state_text(run, tasklet)}, at {CODE + 8 * run.member('pc', tasklet, 4):#x}"
    with preserved():
        threads = list(executed())
    for thread, other, number in threads:
        if (other.pe, number) == (run.pe, tasklet):
            thread.switch()
            frame = select_source()
            if frame.find_sal().symtab is not None:  # not between the tasklet and the emulator
                return f"runs, in {place_text(frame)}"
    state = state_text(run, tasklet)
    if state == ENDED:
        return state
    unwinder.choose(run, tasklet)
    return f"{state}, in {place_text(select_source())}"
