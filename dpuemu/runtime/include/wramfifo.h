/// wramfifo.h: would declare queues between the host and a running PE, but the emulator lacks such
/// queues.
#error "WRAM FIFOs are not emulated: the host cannot exchange data with a running PE"
