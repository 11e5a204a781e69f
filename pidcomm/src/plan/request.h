// Functions that check the codes in a request and return the names of codes.
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
  int code;  // a code of PIDCOMM_TYPES

  /// Returns the element type with this code. Errors: ERR_TYPE.
  static ElementType of(int code);
};

/// The kind of an operator (last column of PIDCOMM_OPS).
enum class OpKind { arith, order, bits };

/// Checks an operator. Errors: ERR_OP if op is unknown, or if op is bitwise and the element type is
/// a float.
void check_op(int op, const ElementType &type);

/// Whether the operator computes each byte of the result only from the same byte of its inputs.
/// Such an operator can run on lines in PIM order.
bool is_bytewise(int op, const ElementType &type);

/// Return the name of a code, or nullptr if the code is unknown.
const char *name_of_status(int code);
const char *name_of_collective(int code);
const char *name_of_type(int code);
const char *name_of_op(int code);
const char *name_of_technique(int code);
const char *name_of_isa(int code);
const char *name_of_coherence(int code);
const char *name_of_copy_order(int code);

}  // namespace pidcomm
