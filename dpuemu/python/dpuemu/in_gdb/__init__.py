"""Commands of GDB for PEs and tasklets. `dpuemu debug` imports the module `commands` in GDB.

They read the state of the emulator from memory (src/machine/debugger.h), so that they also work on
core files. These modules run in GDB's Python, which cannot import other modules of dpuemu.
"""
