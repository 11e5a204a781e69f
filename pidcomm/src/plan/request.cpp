#include "plan/request.h"

#include "pidcomm/messages.h"
#include "pidcomm/operators.h"

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

namespace {
PIDCOMM_NAMES(name_of_block_collective, PIDCOMM_COLLECTIVES, PIDCOMM_CASE_3)
PIDCOMM_NAMES(name_of_scan, PIDCOMM_SCANS, PIDCOMM_CASE_3)
}  // namespace

PIDCOMM_NAMES(name_of_status, PIDCOMM_STATUSES, PIDCOMM_CASE_ENUM)
PIDCOMM_NAMES(name_of_type, PIDCOMM_TYPES, PIDCOMM_CASE_3)
PIDCOMM_NAMES(name_of_op, PIDCOMM_OPS, PIDCOMM_CASE_STRING)
PIDCOMM_NAMES(name_of_technique, PIDCOMM_TECHNIQUES, PIDCOMM_CASE_STRING)
PIDCOMM_NAMES(name_of_isa, PIDCOMM_ISAS, PIDCOMM_CASE_STRING)
PIDCOMM_NAMES(name_of_coherence, PIDCOMM_COHERENCES, PIDCOMM_CASE_STRING)
PIDCOMM_NAMES(name_of_copy_order, PIDCOMM_COPY_ORDERS, PIDCOMM_CASE_STRING)

const char *name_of_collective(int code) {
  if (code == PIDCOMM_SENDRECV) return "sendrecv";
  const char *const scan = name_of_scan(code);
  return scan != nullptr ? scan : name_of_block_collective(code);
}

namespace {

// " PIDCOMM_SUM (0) PIDCOMM_PROD (1)" and the remaining operators.
#define PIDCOMM_ROW(ENUM, code, ...) " PIDCOMM_" #ENUM " (" #code ")"
constexpr const char *kTypeChoices = PIDCOMM_TYPES(PIDCOMM_ROW);
constexpr const char *kOpChoices = PIDCOMM_OPS(PIDCOMM_ROW);
#undef PIDCOMM_ROW

}  // namespace

ElementType ElementType::of(int code) {
  using Kind = ElementType::Kind;
  switch (code) {
#define PIDCOMM_ROW(ENUM, row_code, name, ctype, kind) \
  case row_code:                                       \
    return {Kind::kind, sizeof(ctype), row_code};
    PIDCOMM_TYPES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    case 1:
    case 2:
    case 4:
    case 8:
      fail(PIDCOMM_ERR_TYPE, "type code ", code,
           " is a size, the same for integers and floats; use PIDCOMM_INT", 8 * code,
           " or PIDCOMM_UINT", 8 * code,
           code >= 4 ? ", or PIDCOMM_FLOAT" + std::to_string(8 * code) : "",
           " (<pidcomm/isca24.h> takes sizes of integer words, except for min and max)");
    default:
      fail(PIDCOMM_ERR_TYPE, "type code ", code, " is unknown; use one of", kTypeChoices);
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

void check_op(int op, const ElementType &type) {
  if (kind_of_op(op) == OpKind::bits && type.kind == ElementType::Kind::floating)
    fail(PIDCOMM_ERR_OP, "operator ", name_of_op(op), " is for integers, not for ",
         name_of_type(type.code));
}

bool is_bytewise(int op, const ElementType &type) {
  return kind_of_op(op) == OpKind::bits || type.size_bytes == 1;
}

}  // namespace pidcomm
