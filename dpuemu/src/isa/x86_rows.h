// The host code for the operations and the conditions of a DPU.
#pragma once

#include <cstdint>
#include <iterator>
#include <string_view>

#include "isa/instruction.h"
#include "isa/x86_code.h"

namespace dpuemu::isa {

/// How the carry flag of the tasklet follows from the one of the processor.
enum class CarryRule : uint8_t { kUnchanged, kEqual, kInverted };

/// The host code of an operation with a value, in hexadecimal. It computes eax from eax (operand
/// a) and ecx (operand b or, of a shift, the shift).
struct ValueRow {
  Operation operation;
  std::string_view code[3];
  bool sets_flags = false;  // the processor's sign and zero flag are those of the value
  CarryRule carry = CarryRule::kUnchanged;
  // Adds operand b, which is in ecx, to the value of `code`, which sets the zero flag.
  std::string_view addition[2] = {};
};

// Parts of the host code.
using Hex = std::string_view;
constexpr Hex kNot = "F7 D0";               // not eax
constexpr Hex kAdd = "01 C8";               // add eax, ecx
constexpr Hex kProduct = "0F AF C1";        // imul eax, ecx
constexpr Hex kALowUnsigned = "0F B6 C0";   // movzx eax, al
constexpr Hex kAHighUnsigned = "0F B6 C4";  // movzx eax, ah
constexpr Hex kALowSigned = "0F BE C0";     // movsx eax, al
constexpr Hex kAHighSigned = "0F BE C4";    // movsx eax, ah
constexpr Hex kBLowUnsigned = "0F B6 C9";   // movzx ecx, cl
constexpr Hex kBHighUnsigned = "0F B6 CD";  // movzx ecx, ch
constexpr Hex kBLowSigned = "0F BE C9";     // movsx ecx, cl
constexpr Hex kBHighSigned = "0F BE CD";    // movsx ecx, ch
// and ecx, 31; shl rax, cl; shr rax, 32
constexpr Hex kShiftOutLeft = "83 E1 1F 48 D3 E0 48 C1 E8 20";
// and ecx, 31; shl rax, 32; shr rax, cl
constexpr Hex kShiftOutRight = "83 E1 1F 48 C1 E0 20 48 D3 E8";
// mov ecx, 63; bsr eax, eax; cmovz eax, ecx; xor eax, 31
constexpr Hex kLeadingZeros = "B9 3F 00 00 00 0F BD C0 0F 44 C1 83 F0 1F";
// mov ecx, eax; sar ecx, 31; xor eax, ecx
constexpr Hex kWithoutSign = "89 C1 C1 F9 1F 31 C8";
// movd xmm0, eax; movd xmm1, ecx; pcmpeqb xmm0, xmm1; movd eax, xmm0
constexpr Hex kEqualBytes = "66 0F 6E C0 66 0F 6E C9 66 0F 74 C1 66 0F 7E C0";

constexpr ValueRow kValueRows[] = {
    {Operation::add, {kAdd}, true, CarryRule::kEqual},
    {Operation::addc, {"11 C8"}, true, CarryRule::kEqual},            // adc eax, ecx
    {Operation::sub, {"29 C8"}, true, CarryRule::kInverted},          // sub eax, ecx
    {Operation::subc, {"19 C8"}, true, CarryRule::kInverted},         // sbb eax, ecx
    {Operation::rsub, {"29 C1 89 C8"}, true, CarryRule::kInverted},   // sub ecx, eax; mov eax, ecx
    {Operation::rsubc, {"19 C1 89 C8"}, true, CarryRule::kInverted},  // sbb ecx, eax; mov eax, ecx
    {Operation::and_, {"21 C8"}, true},                               // and eax, ecx
    {Operation::or_, {"09 C8"}, true},                                // or eax, ecx
    {Operation::xor_, {"31 C8"}, true},                               // xor eax, ecx
    {Operation::nand, {"21 C8", kNot}},
    {Operation::nor, {"09 C8", kNot}},
    {Operation::nxor, {"31 C8", kNot}},
    {Operation::andn, {kNot, "21 C8"}, true},
    {Operation::orn, {kNot, "09 C8"}, true},
    {Operation::lsl, {"D3 E0"}},  // shl eax, cl
    {Operation::lsl1, {kNot, "D3 E0", kNot}},
    {Operation::lslx, {kShiftOutLeft}},
    {Operation::lsl1x, {kNot, kShiftOutLeft, kNot}},
    {Operation::lsr, {"D3 E8"}},  // shr eax, cl
    {Operation::lsr1, {kNot, "D3 E8", kNot}},
    {Operation::lsrx, {kShiftOutRight}},
    {Operation::lsr1x, {kNot, kShiftOutRight, kNot}},
    {Operation::asr, {"D3 F8"}},  // sar eax, cl
    {Operation::rol, {"D3 C0"}},
    {Operation::ror, {"D3 C8"}},
    {Operation::lsl_add, {"D3 E0"}, false, CarryRule::kUnchanged, {kAdd}},
    {Operation::lsl_sub, {"D3 E0"}, false, CarryRule::kUnchanged, {"F7 D8", kAdd}},  // neg eax
    {Operation::lsr_add, {"D3 E8"}, false, CarryRule::kUnchanged, {kAdd}},
    {Operation::rol_add, {"D3 C0"}, false, CarryRule::kUnchanged, {kAdd}},
    {Operation::cao, {"F3 0F B8 C0"}},  // popcnt eax, eax
    {Operation::clo, {kNot, kLeadingZeros}, true},
    {Operation::cls, {kWithoutSign, kLeadingZeros, "FF C8"}, true},  // dec eax
    {Operation::clz, {kLeadingZeros}, true},
    {Operation::extub, {"0F B6 C0"}},                           // movzx eax, al
    {Operation::extuh, {"0F B7 C0"}},                           // movzx eax, ax
    {Operation::extsb, {"0F BE C0"}},                           // movsx eax, al
    {Operation::extsh, {"0F BF C0"}},                           // movsx eax, ax
    {Operation::sats, {"C1 F8 1F 35 00 00 00 80"}, true},       // sar eax, 31; xor eax, 0x80000000
    {Operation::cmpb4, {kEqualBytes, "25 01 01 01 01"}, true},  // and eax, 0x01010101
    {Operation::mul_ul_ul, {kALowUnsigned, kBLowUnsigned, kProduct}},
    {Operation::mul_ul_uh, {kALowUnsigned, kBHighUnsigned, kProduct}},
    {Operation::mul_uh_ul, {kAHighUnsigned, kBLowUnsigned, kProduct}},
    {Operation::mul_uh_uh, {kAHighUnsigned, kBHighUnsigned, kProduct}},
    {Operation::mul_sl_sl, {kALowSigned, kBLowSigned, kProduct}},
    {Operation::mul_sl_sh, {kALowSigned, kBHighSigned, kProduct}},
    {Operation::mul_sh_sl, {kAHighSigned, kBLowSigned, kProduct}},
    {Operation::mul_sh_sh, {kAHighSigned, kBHighSigned, kProduct}},
    {Operation::mul_sl_ul, {kALowSigned, kBLowUnsigned, kProduct}},
    {Operation::mul_sl_uh, {kALowSigned, kBHighUnsigned, kProduct}},
    {Operation::mul_sh_ul, {kAHighSigned, kBLowUnsigned, kProduct}},
    {Operation::mul_sh_uh, {kAHighSigned, kBHighUnsigned, kProduct}},
};

/// How a condition is evaluated.
enum class Check : uint8_t {
  kFlags,    // the flags of the processor
  kBitsOfA,  // whether bits of operand a are 0, and so on
  kBitsOfB,
  kBitsOfBoth,  // of a | b
  kBitsOfValue,
  kCarriesInto,  // of a ^ b ^ value
  kValue,        // whether the value is a number
  kTwoWords,     // whether the zero flag is 1 before and after
};

struct ConditionRow {
  Condition condition;
  Check check;
  uint8_t holds;  // HostCondition
  // Of kValue: the number. Of kTwoWords: a HostCondition; if it is true, `holds` is as if both zero
  // flags were 1.
  uint32_t bits = 0;
};

constexpr uint32_t kNoOther = ~0u, kSignBit = 0x80000000;
constexpr ConditionRow kConditionRows[] = {
    {Condition::kNone, Check::kFlags, kEqual},
    {Condition::true_, Check::kFlags, kEqual},
    {Condition::z, Check::kFlags, kEqual},
    {Condition::nz, Check::kFlags, kNotEqual},
    {Condition::xz, Check::kTwoWords, kNotEqual, kNoOther},
    {Condition::xnz, Check::kTwoWords, kEqual, kNoOther},
    {Condition::pl, Check::kFlags, kPositive},
    {Condition::mi, Check::kFlags, kNegative},
    {Condition::sz, Check::kBitsOfA, kEqual, ~0u},
    {Condition::snz, Check::kBitsOfA, kNotEqual, ~0u},
    {Condition::spl, Check::kBitsOfA, kEqual, kSignBit},
    {Condition::smi, Check::kBitsOfA, kNotEqual, kSignBit},
    {Condition::v, Check::kFlags, kOverflow},
    {Condition::nv, Check::kFlags, kNoOverflow},
    {Condition::c, Check::kFlags, kBelow},  // of a sum
    {Condition::nc, Check::kFlags, kAboveEqual},
    {Condition::ltu, Check::kFlags, kBelow},  // of a difference, as the conditions down to gtu
    {Condition::geu, Check::kFlags, kAboveEqual},
    {Condition::lts, Check::kFlags, kLess},
    {Condition::ges, Check::kFlags, kGreaterEqual},
    {Condition::les, Check::kFlags, kLessEqual},
    {Condition::gts, Check::kFlags, kGreater},
    {Condition::leu, Check::kFlags, kBelowEqual},
    {Condition::gtu, Check::kFlags, kAbove},
    {Condition::xles, Check::kTwoWords, kNotEqual, kLess},
    {Condition::xgts, Check::kTwoWords, kEqual, kLess},
    {Condition::xleu, Check::kTwoWords, kNotEqual, kBelow},
    {Condition::xgtu, Check::kTwoWords, kEqual, kBelow},
    {Condition::e, Check::kBitsOfValue, kEqual, 1},
    {Condition::o, Check::kBitsOfValue, kNotEqual, 1},
    {Condition::se, Check::kBitsOfA, kEqual, 1},
    {Condition::so, Check::kBitsOfA, kNotEqual, 1},
    {Condition::sh32, Check::kBitsOfB, kNotEqual, 32},
    {Condition::nsh32, Check::kBitsOfB, kEqual, 32},
    {Condition::max32, Check::kValue, kEqual, 32},
    {Condition::nmax32, Check::kValue, kNotEqual, 32},
    {Condition::max31, Check::kValue, kEqual, 31},
    {Condition::nmax31, Check::kValue, kNotEqual, 31},
    {Condition::small, Check::kBitsOfBoth, kEqual, 0xFF00},
    {Condition::large, Check::kBitsOfBoth, kNotEqual, 0xFF00},
    {Condition::nc5, Check::kCarriesInto, kEqual, 1 << 5},
    {Condition::nc6, Check::kCarriesInto, kEqual, 1 << 6},
    {Condition::nc7, Check::kCarriesInto, kEqual, 1 << 7},
    {Condition::nc8, Check::kCarriesInto, kEqual, 1 << 8},
    {Condition::nc9, Check::kCarriesInto, kEqual, 1 << 9},
    {Condition::nc10, Check::kCarriesInto, kEqual, 1 << 10},
    {Condition::nc11, Check::kCarriesInto, kEqual, 1 << 11},
    {Condition::nc12, Check::kCarriesInto, kEqual, 1 << 12},
    {Condition::nc13, Check::kCarriesInto, kEqual, 1 << 13},
    {Condition::nc14, Check::kCarriesInto, kEqual, 1 << 14},
};

constexpr bool are_in_order() {
  if (row_of(static_cast<Operation>(std::size(kValueRows))).kind == Kind::VALUE) return false;
  for (size_t i = 0; i < std::size(kValueRows); ++i)
    if (kValueRows[i].operation != static_cast<Operation>(i)) return false;
  for (size_t i = 0; i < std::size(kConditionRows); ++i)
    if (kConditionRows[i].condition != static_cast<Condition>(i)) return false;
  return true;
}
static_assert(are_in_order());

}  // namespace dpuemu::isa
