/* Shared by the host and the PEs of matrix_vector: blocks of kSide x kSide words. */
#ifndef MATRIX_VECTOR_H
#define MATRIX_VECTOR_H

enum { kSide = 32 };

#endif
