// The codes of a request: checks and names.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/geometry.h"
#include "pidcomm/pidcomm.h"

namespace pidcomm {

/// An element type.
struct ElementType {
  enum class Kind { signed_integer, unsigned_integer, floating };
  Kind kind;
  uint32_t size_bytes;
  int code;  // of PIDCOMM_TYPES

  /// Errors: ERR_TYPE.
  static ElementType of(int code);
};

/// Kind of an operator (last column of PIDCOMM_OPS).
enum class OpKind { arith, order, bits };

/// Errors: ERR_OP if op is unknown, or bitwise on a float.
void check_op(int op, const ElementType &type);

/// Whether the operator treats every byte by itself, so that it can run on lines in PIM order.
bool is_bytewise(int op, const ElementType &type);

/// Name of a code, or nullptr.
const char *name_of_status(int code);
const char *name_of_collective(int code);
const char *name_of_type(int code);
const char *name_of_op(int code);
const char *name_of_technique(int code);
const char *name_of_isa(int code);
const char *name_of_coherence(int code);
const char *name_of_copy_order(int code);

}  // namespace pidcomm
