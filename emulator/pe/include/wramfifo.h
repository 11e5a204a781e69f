/// wramfifo.h: queues between the host and a running PE. A PE program here runs to its end before the host sees its memory again.
#error "WRAM FIFOs are not emulated: the host cannot exchange data with a running PE"
