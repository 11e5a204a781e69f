/* Shared by the host and the PEs of jacobi: a grid of kGrid x kGrid PEs with kSide x kSide cells
 * each. */
#ifndef JACOBI_H
#define JACOBI_H

enum { kGrid = 8, kSide = 16 };

#endif
