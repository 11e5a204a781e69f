/// wramfifo.h: queues between the host and a running PE, which the emulator lacks.
#error "WRAM FIFOs are not emulated: the host cannot exchange data with a running PE"
