#include "plan/request.h"

#include <type_traits>

namespace pidcomm {

#define PIDCOMM_CASE_3(ENUM, code, name, ...) \
  case code:                                  \
    return #name;
#define PIDCOMM_CASE_STRING(ENUM, code, name, ...) \
  case code:                                       \
    return name;
#define PIDCOMM_CASE_ENUM(ENUM, code, ...) \
  case code:                               \
    return #ENUM;
#define PIDCOMM_NAMES(function, TABLE, CASE) \
  const char *function(int code) {           \
    switch (code) {                          \
      TABLE(CASE)                            \
      default:                               \
        return nullptr;                      \
    }                                        \
  }

PIDCOMM_NAMES(name_of_status, PIDCOMM_STATUSES, PIDCOMM_CASE_ENUM)
PIDCOMM_NAMES(name_of_collective, PIDCOMM_COLLECTIVES, PIDCOMM_CASE_3)
PIDCOMM_NAMES(name_of_type, PIDCOMM_TYPES, PIDCOMM_CASE_3)
PIDCOMM_NAMES(name_of_op, PIDCOMM_OPS, PIDCOMM_CASE_STRING)
PIDCOMM_NAMES(name_of_technique, PIDCOMM_TECHNIQUES, PIDCOMM_CASE_STRING)
PIDCOMM_NAMES(name_of_isa, PIDCOMM_ISAS, PIDCOMM_CASE_STRING)
PIDCOMM_NAMES(name_of_coherence, PIDCOMM_COHERENCES, PIDCOMM_CASE_STRING)
PIDCOMM_NAMES(name_of_copy_order, PIDCOMM_COPY_ORDERS, PIDCOMM_CASE_STRING)

namespace {

// " PIDCOMM_SUM (0) PIDCOMM_PROD (1)", and so on.
#define PIDCOMM_ROW(ENUM, code, ...) " PIDCOMM_" #ENUM " (" #code ")"
constexpr const char *kTypeChoices = PIDCOMM_TYPES(PIDCOMM_ROW);
constexpr const char *kOpChoices = PIDCOMM_OPS(PIDCOMM_ROW);
#undef PIDCOMM_ROW

}  // namespace

ElementType ElementType::of(int code) {
  using Kind = ElementType::Kind;
  switch (code) {
#define PIDCOMM_ROW(ENUM, row_code, name, ctype)                                                                                          \
  case row_code:                                                                                                                          \
    return {std::is_floating_point_v<ctype> ? Kind::floating : (std::is_signed_v<ctype> ? Kind::signed_integer : Kind::unsigned_integer), \
            sizeof(ctype), row_code};
    PIDCOMM_TYPES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    case 1:
      return {Kind::bare_integer, 1, PIDCOMM_UINT8};
    case 2:
      return {Kind::bare_integer, 2, PIDCOMM_UINT16};
    case 4:
      return {Kind::bare_integer, 4, PIDCOMM_UINT32};
    case 8:
      return {Kind::bare_integer, 8, PIDCOMM_UINT64};
    default:
      fail(PIDCOMM_ERR_TYPE, "type code ", code, " is unknown; use 1, 2, 4, 8 for integer words, or one of", kTypeChoices);
  }
}

namespace {

OpKind kind_of_op(int op) {
  switch (op) {
#define PIDCOMM_ROW(ENUM, code, name, kind) \
  case code:                                \
    return OpKind::kind;
    PIDCOMM_OPS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    default:
      fail(PIDCOMM_ERR_OP, "operator code ", op, " is unknown; use one of", kOpChoices);
  }
}

}  // namespace

void check_op(int op, const ElementType &type, int type_code) {
  const OpKind kind = kind_of_op(op);
  if (kind == OpKind::order && type.kind == ElementType::Kind::bare_integer)
    fail(PIDCOMM_ERR_OP, name_of_op(op), " needs to know the sign of the elements: type ", type_code, " is a bare size; use PIDCOMM_INT",
         8 * type_code, " or PIDCOMM_UINT", 8 * type_code);
  if (kind == OpKind::bits && type.kind == ElementType::Kind::floating)
    fail(PIDCOMM_ERR_OP, "operator ", name_of_op(op), " is for integers, not for ", name_of_type(type.code));
}

bool is_bytewise(int op, const ElementType &type) { return kind_of_op(op) == OpKind::bits || type.size_bytes == 1; }

}  // namespace pidcomm
