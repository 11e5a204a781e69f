/* Shared by the host and the PEs of matrix_vector: blocks of kSide x kSide words; offsets are bytes
 * from the start of the MRAM heap. */
#ifndef MATRIX_VECTOR_H
#define MATRIX_VECTOR_H

enum {
  kSide = 32,
  kBlockBytes = 4 * kSide * kSide,
  kVectorBytes = 4 * kSide,
  kInputOffset = kBlockBytes,
  kOutputOffset = kInputOffset + kVectorBytes
};

#endif
