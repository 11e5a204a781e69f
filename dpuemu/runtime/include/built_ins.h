/// built_ins.h: functions and macros with the names of DPU instructions, for instructions that C
/// can express.
///
/// rc or dc receives the 32-bit or 64-bit result of the sources ra and rb; the numbers imm and
/// shift are strings, as in assembly: "12",
/// "-1", "0xff". dc extends the result with its sign (_s_) or with zeros (_u_). The letters at the
/// end of a name state the operands of the instruction. Differs from the SDK: instructions that
/// jump, test a condition, or use the carry flag or other state of the DPU do not compile.
#ifndef PE_BUILT_INS_H
#define PE_BUILT_INS_H

#include <stdint.h>

/// Returns the value of a number in assembly syntax.
static inline __attribute__((always_inline)) uint32_t __pe_immediate(const char *text) {
  uint32_t is_negative = *text == '-';
  text += is_negative;
  uint32_t base = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10;
  if (base == 16) text += 2;
  uint32_t value = 0;
  for (; *text != '\0'; ++text)
    value = value * base + (*text <= '9' ? *text - '0' : (*text | 0x20) - 'a' + 10);
  return is_negative ? -value : value;
}

/// The result has 0x01 in each byte in which the two sources are equal, and 0 in all other bytes.
static inline uint32_t __pe_cmpb4(uint32_t a, uint32_t b) {
  uint32_t equal = 0;
  for (uint32_t bit = 0; bit < 32; bit += 8)
    equal |= (uint32_t)(((a ^ b) >> bit & 0xFF) == 0) << bit;
  return equal;
}

static inline uint32_t __pe_clz(uint32_t a) { return a == 0 ? 32 : (uint32_t)__builtin_clz(a); }

#define __PE_OP_lsl(a, n) ((uint32_t)(a) << ((n) & 31))
#define __PE_OP_lsr(a, n) ((uint32_t)(a) >> ((n) & 31))
#define __PE_OP_asr(a, n) ((uint32_t)((int32_t)(a) >> ((n) & 31)))
#define __PE_OP_rol(a, n) ((uint32_t)(a) << ((n) & 31) | (uint32_t)(a) >> (-(n) & 31))
#define __PE_OP_ror(a, n) ((uint32_t)(a) >> ((n) & 31) | (uint32_t)(a) << (-(n) & 31))
/// The results are the bits that the instructions lsl and lsr shift out.
#define __PE_OP_lslx(a, n) ((uint32_t)((uint64_t)(uint32_t)(a) << ((n) & 31) >> 32))
#define __PE_OP_lsrx(a, n) ((uint32_t)((uint64_t)(uint32_t)(a) << 32 >> ((n) & 31)))
#define __PE_OP_add(a, b) ((uint32_t)(a) + (uint32_t)(b))
#define __PE_OP_sub(a, b) ((uint32_t)(a) - (uint32_t)(b))
#define __PE_OP_rsub(a, b) ((uint32_t)(b) - (uint32_t)(a))
#define __PE_OP_and(a, b) ((uint32_t)(a) & (uint32_t)(b))
#define __PE_OP_or(a, b) ((uint32_t)(a) | (uint32_t)(b))
#define __PE_OP_xor(a, b) ((uint32_t)(a) ^ (uint32_t)(b))
#define __PE_OP_nand(a, b) (~((uint32_t)(a) & (uint32_t)(b)))
#define __PE_OP_nor(a, b) (~((uint32_t)(a) | (uint32_t)(b)))
#define __PE_OP_nxor(a, b) (~((uint32_t)(a) ^ (uint32_t)(b)))
#define __PE_OP_andn(a, b) (~(uint32_t)(a) & (uint32_t)(b))
#define __PE_OP_orn(a, b) (~(uint32_t)(a) | (uint32_t)(b))
#define __PE_OP_cmpb4(a, b) __pe_cmpb4((uint32_t)(a), (uint32_t)(b))
/// Multiply the lowest (l) or second (h) byte of each source, signed (s) or unsigned (u).
#define __PE_BYTE_sl(a) ((int32_t)(int8_t)(a))
#define __PE_BYTE_sh(a) ((int32_t)(int8_t)((a) >> 8))
#define __PE_BYTE_ul(a) ((int32_t)(uint8_t)(a))
#define __PE_BYTE_uh(a) ((int32_t)(uint8_t)((a) >> 8))
#define __PE_MUL(x, y, a, b) ((uint32_t)(__PE_BYTE_##x(a) * __PE_BYTE_##y(b)))
#define __PE_OP_cao(a) ((uint32_t)__builtin_popcount(a))
#define __PE_OP_clz(a) __pe_clz((uint32_t)(a))
#define __PE_OP_clo(a) __pe_clz(~(uint32_t)(a))
#define __PE_OP_extsb(a) ((uint32_t)(int8_t)(a))
#define __PE_OP_extsh(a) ((uint32_t)(int16_t)(a))
#define __PE_OP_extub(a) ((uint32_t)(uint8_t)(a))
#define __PE_OP_extuh(a) ((uint32_t)(uint16_t)(a))

/// Assign to a 32-bit register, or to a 64-bit register with sign or zero extension.
#define __PE_SET_(target, value) ((target) = (value))
#define __PE_SET_s(target, value) ((target) = (int64_t)(int32_t)(value))
#define __PE_SET_u(target, value) ((target) = (uint64_t)(uint32_t)(value))

/// Executes one instruction that has no effect.
#define __builtin_nop_() __asm__ volatile("nop")

#define __builtin_lsl_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_lsl(ra, rb))
#define __builtin_lsl_rri(rc, ra, imm) __PE_SET_(rc, __PE_OP_lsl(ra, __pe_immediate(imm)))
#define __builtin_lsl_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_lsl(ra, rb))
#define __builtin_lsl_s_rri(dc, ra, imm) __PE_SET_s(dc, __PE_OP_lsl(ra, __pe_immediate(imm)))
#define __builtin_lsl_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_lsl(ra, rb))
#define __builtin_lsl_u_rri(dc, ra, imm) __PE_SET_u(dc, __PE_OP_lsl(ra, __pe_immediate(imm)))
#define __builtin_lsr_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_lsr(ra, rb))
#define __builtin_lsr_rri(rc, ra, imm) __PE_SET_(rc, __PE_OP_lsr(ra, __pe_immediate(imm)))
#define __builtin_lsr_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_lsr(ra, rb))
#define __builtin_lsr_s_rri(dc, ra, imm) __PE_SET_s(dc, __PE_OP_lsr(ra, __pe_immediate(imm)))
#define __builtin_lsr_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_lsr(ra, rb))
#define __builtin_lsr_u_rri(dc, ra, imm) __PE_SET_u(dc, __PE_OP_lsr(ra, __pe_immediate(imm)))
#define __builtin_asr_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_asr(ra, rb))
#define __builtin_asr_rri(rc, ra, imm) __PE_SET_(rc, __PE_OP_asr(ra, __pe_immediate(imm)))
#define __builtin_asr_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_asr(ra, rb))
#define __builtin_asr_s_rri(dc, ra, imm) __PE_SET_s(dc, __PE_OP_asr(ra, __pe_immediate(imm)))
#define __builtin_asr_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_asr(ra, rb))
#define __builtin_asr_u_rri(dc, ra, imm) __PE_SET_u(dc, __PE_OP_asr(ra, __pe_immediate(imm)))
#define __builtin_rol_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_rol(ra, rb))
#define __builtin_rol_rri(rc, ra, imm) __PE_SET_(rc, __PE_OP_rol(ra, __pe_immediate(imm)))
#define __builtin_rol_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_rol(ra, rb))
#define __builtin_rol_s_rri(dc, ra, imm) __PE_SET_s(dc, __PE_OP_rol(ra, __pe_immediate(imm)))
#define __builtin_rol_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_rol(ra, rb))
#define __builtin_rol_u_rri(dc, ra, imm) __PE_SET_u(dc, __PE_OP_rol(ra, __pe_immediate(imm)))
#define __builtin_ror_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_ror(ra, rb))
#define __builtin_ror_rri(rc, ra, imm) __PE_SET_(rc, __PE_OP_ror(ra, __pe_immediate(imm)))
#define __builtin_ror_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_ror(ra, rb))
#define __builtin_ror_s_rri(dc, ra, imm) __PE_SET_s(dc, __PE_OP_ror(ra, __pe_immediate(imm)))
#define __builtin_ror_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_ror(ra, rb))
#define __builtin_ror_u_rri(dc, ra, imm) __PE_SET_u(dc, __PE_OP_ror(ra, __pe_immediate(imm)))
#define __builtin_lslx_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_lslx(ra, rb))
#define __builtin_lslx_rri(rc, ra, imm) __PE_SET_(rc, __PE_OP_lslx(ra, __pe_immediate(imm)))
#define __builtin_lslx_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_lslx(ra, rb))
#define __builtin_lslx_s_rri(dc, ra, imm) __PE_SET_s(dc, __PE_OP_lslx(ra, __pe_immediate(imm)))
#define __builtin_lslx_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_lslx(ra, rb))
#define __builtin_lslx_u_rri(dc, ra, imm) __PE_SET_u(dc, __PE_OP_lslx(ra, __pe_immediate(imm)))
#define __builtin_lsrx_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_lsrx(ra, rb))
#define __builtin_lsrx_rri(rc, ra, imm) __PE_SET_(rc, __PE_OP_lsrx(ra, __pe_immediate(imm)))
#define __builtin_lsrx_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_lsrx(ra, rb))
#define __builtin_lsrx_s_rri(dc, ra, imm) __PE_SET_s(dc, __PE_OP_lsrx(ra, __pe_immediate(imm)))
#define __builtin_lsrx_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_lsrx(ra, rb))
#define __builtin_lsrx_u_rri(dc, ra, imm) __PE_SET_u(dc, __PE_OP_lsrx(ra, __pe_immediate(imm)))
#define __builtin_add_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_add(ra, rb))
#define __builtin_add_rri(rc, ra, imm) __PE_SET_(rc, __PE_OP_add(ra, __pe_immediate(imm)))
#define __builtin_add_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_add(ra, rb))
#define __builtin_add_s_rri(dc, ra, imm) __PE_SET_s(dc, __PE_OP_add(ra, __pe_immediate(imm)))
#define __builtin_add_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_add(ra, rb))
#define __builtin_add_u_rri(dc, ra, imm) __PE_SET_u(dc, __PE_OP_add(ra, __pe_immediate(imm)))
#define __builtin_sub_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_sub(ra, rb))
#define __builtin_sub_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_sub(ra, rb))
#define __builtin_sub_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_sub(ra, rb))
#define __builtin_rsub_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_rsub(ra, rb))
#define __builtin_rsub_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_rsub(ra, rb))
#define __builtin_rsub_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_rsub(ra, rb))
#define __builtin_and_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_and(ra, rb))
#define __builtin_and_rri(rc, ra, imm) __PE_SET_(rc, __PE_OP_and(ra, __pe_immediate(imm)))
#define __builtin_and_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_and(ra, rb))
#define __builtin_and_s_rri(dc, ra, imm) __PE_SET_s(dc, __PE_OP_and(ra, __pe_immediate(imm)))
#define __builtin_and_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_and(ra, rb))
#define __builtin_and_u_rri(dc, ra, imm) __PE_SET_u(dc, __PE_OP_and(ra, __pe_immediate(imm)))
#define __builtin_or_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_or(ra, rb))
#define __builtin_or_rri(rc, ra, imm) __PE_SET_(rc, __PE_OP_or(ra, __pe_immediate(imm)))
#define __builtin_or_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_or(ra, rb))
#define __builtin_or_s_rri(dc, ra, imm) __PE_SET_s(dc, __PE_OP_or(ra, __pe_immediate(imm)))
#define __builtin_or_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_or(ra, rb))
#define __builtin_or_u_rri(dc, ra, imm) __PE_SET_u(dc, __PE_OP_or(ra, __pe_immediate(imm)))
#define __builtin_xor_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_xor(ra, rb))
#define __builtin_xor_rri(rc, ra, imm) __PE_SET_(rc, __PE_OP_xor(ra, __pe_immediate(imm)))
#define __builtin_xor_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_xor(ra, rb))
#define __builtin_xor_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_xor(ra, rb))
#define __builtin_nand_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_nand(ra, rb))
#define __builtin_nand_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_nand(ra, rb))
#define __builtin_nand_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_nand(ra, rb))
#define __builtin_nor_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_nor(ra, rb))
#define __builtin_nor_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_nor(ra, rb))
#define __builtin_nor_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_nor(ra, rb))
#define __builtin_nxor_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_nxor(ra, rb))
#define __builtin_nxor_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_nxor(ra, rb))
#define __builtin_nxor_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_nxor(ra, rb))
#define __builtin_andn_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_andn(ra, rb))
#define __builtin_andn_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_andn(ra, rb))
#define __builtin_andn_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_andn(ra, rb))
#define __builtin_orn_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_orn(ra, rb))
#define __builtin_orn_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_orn(ra, rb))
#define __builtin_orn_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_orn(ra, rb))
#define __builtin_cmpb4_rrr(rc, ra, rb) __PE_SET_(rc, __PE_OP_cmpb4(ra, rb))
#define __builtin_cmpb4_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_OP_cmpb4(ra, rb))
#define __builtin_cmpb4_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_OP_cmpb4(ra, rb))
#define __builtin_lsl_add_rrri(rc, rb, ra, shift) \
  __PE_SET_(rc, (uint32_t)(rb) + __PE_OP_lsl(ra, __pe_immediate(shift)))
#define __builtin_lsl_add_s_rrri(dc, rb, ra, shift) \
  __PE_SET_s(dc, (uint32_t)(rb) + __PE_OP_lsl(ra, __pe_immediate(shift)))
#define __builtin_lsl_add_u_rrri(dc, rb, ra, shift) \
  __PE_SET_u(dc, (uint32_t)(rb) + __PE_OP_lsl(ra, __pe_immediate(shift)))
#define __builtin_lsl_sub_rrri(rc, rb, ra, shift) \
  __PE_SET_(rc, (uint32_t)(rb) - __PE_OP_lsl(ra, __pe_immediate(shift)))
#define __builtin_lsl_sub_s_rrri(dc, rb, ra, shift) \
  __PE_SET_s(dc, (uint32_t)(rb) - __PE_OP_lsl(ra, __pe_immediate(shift)))
#define __builtin_lsl_sub_u_rrri(dc, rb, ra, shift) \
  __PE_SET_u(dc, (uint32_t)(rb) - __PE_OP_lsl(ra, __pe_immediate(shift)))
#define __builtin_lsr_add_rrri(rc, rb, ra, shift) \
  __PE_SET_(rc, (uint32_t)(rb) + __PE_OP_lsr(ra, __pe_immediate(shift)))
#define __builtin_lsr_add_s_rrri(dc, rb, ra, shift) \
  __PE_SET_s(dc, (uint32_t)(rb) + __PE_OP_lsr(ra, __pe_immediate(shift)))
#define __builtin_lsr_add_u_rrri(dc, rb, ra, shift) \
  __PE_SET_u(dc, (uint32_t)(rb) + __PE_OP_lsr(ra, __pe_immediate(shift)))
#define __builtin_rol_add_rrri(rc, rb, ra, shift) \
  __PE_SET_(rc, (uint32_t)(rb) + __PE_OP_rol(ra, __pe_immediate(shift)))
#define __builtin_rol_add_s_rrri(dc, rb, ra, shift) \
  __PE_SET_s(dc, (uint32_t)(rb) + __PE_OP_rol(ra, __pe_immediate(shift)))
#define __builtin_rol_add_u_rrri(dc, rb, ra, shift) \
  __PE_SET_u(dc, (uint32_t)(rb) + __PE_OP_rol(ra, __pe_immediate(shift)))
#define __builtin_mul_sl_sl_rrr(rc, ra, rb) __PE_SET_(rc, __PE_MUL(sl, sl, ra, rb))
#define __builtin_mul_sl_sl_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_MUL(sl, sl, ra, rb))
#define __builtin_mul_sl_sh_rrr(rc, ra, rb) __PE_SET_(rc, __PE_MUL(sl, sh, ra, rb))
#define __builtin_mul_sl_sh_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_MUL(sl, sh, ra, rb))
#define __builtin_mul_sl_ul_rrr(rc, ra, rb) __PE_SET_(rc, __PE_MUL(sl, ul, ra, rb))
#define __builtin_mul_sl_ul_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_MUL(sl, ul, ra, rb))
#define __builtin_mul_sl_uh_rrr(rc, ra, rb) __PE_SET_(rc, __PE_MUL(sl, uh, ra, rb))
#define __builtin_mul_sl_uh_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_MUL(sl, uh, ra, rb))
#define __builtin_mul_sh_sl_rrr(rc, ra, rb) __PE_SET_(rc, __PE_MUL(sh, sl, ra, rb))
#define __builtin_mul_sh_sl_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_MUL(sh, sl, ra, rb))
#define __builtin_mul_sh_sh_rrr(rc, ra, rb) __PE_SET_(rc, __PE_MUL(sh, sh, ra, rb))
#define __builtin_mul_sh_sh_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_MUL(sh, sh, ra, rb))
#define __builtin_mul_sh_ul_rrr(rc, ra, rb) __PE_SET_(rc, __PE_MUL(sh, ul, ra, rb))
#define __builtin_mul_sh_ul_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_MUL(sh, ul, ra, rb))
#define __builtin_mul_sh_uh_rrr(rc, ra, rb) __PE_SET_(rc, __PE_MUL(sh, uh, ra, rb))
#define __builtin_mul_sh_uh_s_rrr(dc, ra, rb) __PE_SET_s(dc, __PE_MUL(sh, uh, ra, rb))
#define __builtin_mul_ul_ul_rrr(rc, ra, rb) __PE_SET_(rc, __PE_MUL(ul, ul, ra, rb))
#define __builtin_mul_ul_ul_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_MUL(ul, ul, ra, rb))
#define __builtin_mul_ul_uh_rrr(rc, ra, rb) __PE_SET_(rc, __PE_MUL(ul, uh, ra, rb))
#define __builtin_mul_ul_uh_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_MUL(ul, uh, ra, rb))
#define __builtin_mul_uh_ul_rrr(rc, ra, rb) __PE_SET_(rc, __PE_MUL(uh, ul, ra, rb))
#define __builtin_mul_uh_ul_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_MUL(uh, ul, ra, rb))
#define __builtin_mul_uh_uh_rrr(rc, ra, rb) __PE_SET_(rc, __PE_MUL(uh, uh, ra, rb))
#define __builtin_mul_uh_uh_u_rrr(dc, ra, rb) __PE_SET_u(dc, __PE_MUL(uh, uh, ra, rb))
#define __builtin_cao_rr(rc, ra) __PE_SET_(rc, __PE_OP_cao(ra))
#define __builtin_cao_s_rr(dc, ra) __PE_SET_s(dc, __PE_OP_cao(ra))
#define __builtin_cao_u_rr(dc, ra) __PE_SET_u(dc, __PE_OP_cao(ra))
#define __builtin_clz_rr(rc, ra) __PE_SET_(rc, __PE_OP_clz(ra))
#define __builtin_clz_s_rr(dc, ra) __PE_SET_s(dc, __PE_OP_clz(ra))
#define __builtin_clz_u_rr(dc, ra) __PE_SET_u(dc, __PE_OP_clz(ra))
#define __builtin_clo_rr(rc, ra) __PE_SET_(rc, __PE_OP_clo(ra))
#define __builtin_clo_s_rr(dc, ra) __PE_SET_s(dc, __PE_OP_clo(ra))
#define __builtin_clo_u_rr(dc, ra) __PE_SET_u(dc, __PE_OP_clo(ra))
#define __builtin_extsb_rr(rc, ra) __PE_SET_(rc, __PE_OP_extsb(ra))
#define __builtin_extsb_s_rr(dc, ra) __PE_SET_s(dc, __PE_OP_extsb(ra))
#define __builtin_extsh_rr(rc, ra) __PE_SET_(rc, __PE_OP_extsh(ra))
#define __builtin_extsh_s_rr(dc, ra) __PE_SET_s(dc, __PE_OP_extsh(ra))
#define __builtin_extub_rr(rc, ra) __PE_SET_(rc, __PE_OP_extub(ra))
#define __builtin_extub_u_rr(dc, ra) __PE_SET_u(dc, __PE_OP_extub(ra))
#define __builtin_extuh_rr(rc, ra) __PE_SET_(rc, __PE_OP_extuh(ra))
#define __builtin_extuh_u_rr(dc, ra) __PE_SET_u(dc, __PE_OP_extuh(ra))

#pragma GCC poison __builtin_acquire_rici __builtin_add_rric __builtin_add_rrici __builtin_add_rrif
#pragma GCC poison __builtin_add_rrrc __builtin_add_rrrci __builtin_add_s_rric __builtin_add_s_rrici
#pragma GCC poison __builtin_add_s_rrif __builtin_add_s_rrrc __builtin_add_s_rrrci __builtin_add_ssi
#pragma GCC poison __builtin_add_sss __builtin_add_u_rric __builtin_add_u_rrici __builtin_add_u_rrif
#pragma GCC poison __builtin_add_u_rrrc __builtin_add_u_rrrci __builtin_add_zri __builtin_add_zric
#pragma GCC poison __builtin_add_zrici __builtin_add_zrif __builtin_add_zrr __builtin_add_zrrc
#pragma GCC poison __builtin_add_zrrci __builtin_addc_rri __builtin_addc_rric __builtin_addc_rrici
#pragma GCC poison __builtin_addc_rrif __builtin_addc_rrr __builtin_addc_rrrc __builtin_addc_rrrci
#pragma GCC poison __builtin_addc_s_rric __builtin_addc_s_rrici __builtin_addc_s_rrif
#pragma GCC poison __builtin_addc_s_rrr __builtin_addc_s_rrrc __builtin_addc_s_rrrci
#pragma GCC poison __builtin_addc_u_rric __builtin_addc_u_rrici __builtin_addc_u_rrif
#pragma GCC poison __builtin_addc_u_rrr __builtin_addc_u_rrrc __builtin_addc_u_rrrci
#pragma GCC poison __builtin_addc_zri __builtin_addc_zric __builtin_addc_zrici __builtin_addc_zrif
#pragma GCC poison __builtin_addc_zrr __builtin_addc_zrrc __builtin_addc_zrrci __builtin_and_rric
#pragma GCC poison __builtin_and_rrici __builtin_and_rrif __builtin_and_rrrc __builtin_and_rrrci
#pragma GCC poison __builtin_and_s_rki __builtin_and_s_rric __builtin_and_s_rrici
#pragma GCC poison __builtin_and_s_rrif __builtin_and_s_rrrc __builtin_and_s_rrrci
#pragma GCC poison __builtin_and_u_rki __builtin_and_u_rric __builtin_and_u_rrici
#pragma GCC poison __builtin_and_u_rrif __builtin_and_u_rrrc __builtin_and_u_rrrci __builtin_and_zri
#pragma GCC poison __builtin_and_zric __builtin_and_zrici __builtin_and_zrif __builtin_and_zrr
#pragma GCC poison __builtin_and_zrrc __builtin_and_zrrci __builtin_andn_rric __builtin_andn_rrici
#pragma GCC poison __builtin_andn_rrif __builtin_andn_rrrc __builtin_andn_rrrci
#pragma GCC poison __builtin_andn_s_rric __builtin_andn_s_rrici __builtin_andn_s_rrif
#pragma GCC poison __builtin_andn_s_rrrc __builtin_andn_s_rrrci __builtin_andn_u_rric
#pragma GCC poison __builtin_andn_u_rrici __builtin_andn_u_rrif __builtin_andn_u_rrrc
#pragma GCC poison __builtin_andn_u_rrrci __builtin_andn_zric __builtin_andn_zrici
#pragma GCC poison __builtin_andn_zrif __builtin_andn_zrr __builtin_andn_zrrc __builtin_andn_zrrci
#pragma GCC poison __builtin_asr_rric __builtin_asr_rrici __builtin_asr_rrrc __builtin_asr_rrrci
#pragma GCC poison __builtin_asr_s_rric __builtin_asr_s_rrici __builtin_asr_s_rrrc
#pragma GCC poison __builtin_asr_s_rrrci __builtin_asr_u_rric __builtin_asr_u_rrici
#pragma GCC poison __builtin_asr_u_rrrc __builtin_asr_u_rrrci __builtin_asr_zri __builtin_asr_zric
#pragma GCC poison __builtin_asr_zrici __builtin_asr_zrr __builtin_asr_zrrc __builtin_asr_zrrci
#pragma GCC poison __builtin_boot_rici __builtin_call_rri __builtin_call_rrr __builtin_call_zri
#pragma GCC poison __builtin_call_zrr __builtin_cao_rrc __builtin_cao_rrci __builtin_cao_s_rrc
#pragma GCC poison __builtin_cao_s_rrci __builtin_cao_u_rrc __builtin_cao_u_rrci __builtin_cao_zr
#pragma GCC poison __builtin_cao_zrc __builtin_cao_zrci __builtin_clo_rrc __builtin_clo_rrci
#pragma GCC poison __builtin_clo_s_rrc __builtin_clo_s_rrci __builtin_clo_u_rrc __builtin_clo_u_rrci
#pragma GCC poison __builtin_clo_zr __builtin_clo_zrc __builtin_clo_zrci __builtin_cls_rr
#pragma GCC poison __builtin_cls_rrc __builtin_cls_rrci __builtin_cls_s_rr __builtin_cls_s_rrc
#pragma GCC poison __builtin_cls_s_rrci __builtin_cls_u_rr __builtin_cls_u_rrc __builtin_cls_u_rrci
#pragma GCC poison __builtin_cls_zr __builtin_cls_zrc __builtin_cls_zrci __builtin_clz_rrc
#pragma GCC poison __builtin_clz_rrci __builtin_clz_s_rrc __builtin_clz_s_rrci __builtin_clz_u_rrc
#pragma GCC poison __builtin_clz_u_rrci __builtin_clz_zr __builtin_clz_zrc __builtin_clz_zrci
#pragma GCC poison __builtin_cmpb4_rrrc __builtin_cmpb4_rrrci __builtin_cmpb4_s_rrrc
#pragma GCC poison __builtin_cmpb4_s_rrrci __builtin_cmpb4_u_rrrc __builtin_cmpb4_u_rrrci
#pragma GCC poison __builtin_cmpb4_zrr __builtin_cmpb4_zrrc __builtin_cmpb4_zrrci
#pragma GCC poison __builtin_div_step_rrrici __builtin_extsb_rrc __builtin_extsb_rrci
#pragma GCC poison __builtin_extsb_s_rrc __builtin_extsb_s_rrci __builtin_extsb_zr
#pragma GCC poison __builtin_extsb_zrc __builtin_extsb_zrci __builtin_extsh_rrc __builtin_extsh_rrci
#pragma GCC poison __builtin_extsh_s_rrc __builtin_extsh_s_rrci __builtin_extsh_zr
#pragma GCC poison __builtin_extsh_zrc __builtin_extsh_zrci __builtin_extub_rrc __builtin_extub_rrci
#pragma GCC poison __builtin_extub_u_rrc __builtin_extub_u_rrci __builtin_extub_zr
#pragma GCC poison __builtin_extub_zrc __builtin_extub_zrci __builtin_extuh_rrc __builtin_extuh_rrci
#pragma GCC poison __builtin_extuh_u_rrc __builtin_extuh_u_rrci __builtin_extuh_zr
#pragma GCC poison __builtin_extuh_zrc __builtin_extuh_zrci __builtin_fault_i __builtin_hash_rric
#pragma GCC poison __builtin_hash_rrici __builtin_hash_rrif __builtin_hash_rrr __builtin_hash_rrrc
#pragma GCC poison __builtin_hash_rrrci __builtin_hash_s_rric __builtin_hash_s_rrici
#pragma GCC poison __builtin_hash_s_rrif __builtin_hash_s_rrr __builtin_hash_s_rrrc
#pragma GCC poison __builtin_hash_s_rrrci __builtin_hash_u_rric __builtin_hash_u_rrici
#pragma GCC poison __builtin_hash_u_rrif __builtin_hash_u_rrr __builtin_hash_u_rrrc
#pragma GCC poison __builtin_hash_u_rrrci __builtin_hash_zric __builtin_hash_zrici
#pragma GCC poison __builtin_hash_zrif __builtin_hash_zrr __builtin_hash_zrrc __builtin_hash_zrrci
#pragma GCC poison __builtin_lbs_erri __builtin_lbs_ersi __builtin_lbs_s_erri __builtin_lbu_erri
#pragma GCC poison __builtin_lbu_ersi __builtin_lbu_u_erri __builtin_ld_erri __builtin_ld_ersi
#pragma GCC poison __builtin_ldma_rri __builtin_ldmai_rri __builtin_lhs_erri __builtin_lhs_ersi
#pragma GCC poison __builtin_lhs_s_erri __builtin_lhu_erri __builtin_lhu_ersi __builtin_lhu_u_erri
#pragma GCC poison __builtin_lsl1_rri __builtin_lsl1_rric __builtin_lsl1_rrici __builtin_lsl1_rrr
#pragma GCC poison __builtin_lsl1_rrrc __builtin_lsl1_rrrci __builtin_lsl1_s_rri
#pragma GCC poison __builtin_lsl1_s_rric __builtin_lsl1_s_rrici __builtin_lsl1_s_rrr
#pragma GCC poison __builtin_lsl1_s_rrrc __builtin_lsl1_s_rrrci __builtin_lsl1_u_rri
#pragma GCC poison __builtin_lsl1_u_rric __builtin_lsl1_u_rrici __builtin_lsl1_u_rrr
#pragma GCC poison __builtin_lsl1_u_rrrc __builtin_lsl1_u_rrrci __builtin_lsl1_zri
#pragma GCC poison __builtin_lsl1_zric __builtin_lsl1_zrici __builtin_lsl1_zrr __builtin_lsl1_zrrc
#pragma GCC poison __builtin_lsl1_zrrci __builtin_lsl1x_rri __builtin_lsl1x_rric
#pragma GCC poison __builtin_lsl1x_rrici __builtin_lsl1x_rrr __builtin_lsl1x_rrrc
#pragma GCC poison __builtin_lsl1x_rrrci __builtin_lsl1x_s_rri __builtin_lsl1x_s_rric
#pragma GCC poison __builtin_lsl1x_s_rrici __builtin_lsl1x_s_rrr __builtin_lsl1x_s_rrrc
#pragma GCC poison __builtin_lsl1x_s_rrrci __builtin_lsl1x_u_rri __builtin_lsl1x_u_rric
#pragma GCC poison __builtin_lsl1x_u_rrici __builtin_lsl1x_u_rrr __builtin_lsl1x_u_rrrc
#pragma GCC poison __builtin_lsl1x_u_rrrci __builtin_lsl1x_zri __builtin_lsl1x_zric
#pragma GCC poison __builtin_lsl1x_zrici __builtin_lsl1x_zrr __builtin_lsl1x_zrrc
#pragma GCC poison __builtin_lsl1x_zrrci __builtin_lsl_add_rrrici __builtin_lsl_add_s_rrrici
#pragma GCC poison __builtin_lsl_add_u_rrrici __builtin_lsl_add_zrri __builtin_lsl_add_zrrici
#pragma GCC poison __builtin_lsl_rric __builtin_lsl_rrici __builtin_lsl_rrrc __builtin_lsl_rrrci
#pragma GCC poison __builtin_lsl_s_rric __builtin_lsl_s_rrici __builtin_lsl_s_rrrc
#pragma GCC poison __builtin_lsl_s_rrrci __builtin_lsl_sub_rrrici __builtin_lsl_sub_s_rrrici
#pragma GCC poison __builtin_lsl_sub_u_rrrici __builtin_lsl_sub_zrri __builtin_lsl_sub_zrrici
#pragma GCC poison __builtin_lsl_u_rric __builtin_lsl_u_rrici __builtin_lsl_u_rrrc
#pragma GCC poison __builtin_lsl_u_rrrci __builtin_lsl_zri __builtin_lsl_zric __builtin_lsl_zrici
#pragma GCC poison __builtin_lsl_zrr __builtin_lsl_zrrc __builtin_lsl_zrrci __builtin_lslx_rric
#pragma GCC poison __builtin_lslx_rrici __builtin_lslx_rrrc __builtin_lslx_rrrci
#pragma GCC poison __builtin_lslx_s_rric __builtin_lslx_s_rrici __builtin_lslx_s_rrrc
#pragma GCC poison __builtin_lslx_s_rrrci __builtin_lslx_u_rric __builtin_lslx_u_rrici
#pragma GCC poison __builtin_lslx_u_rrrc __builtin_lslx_u_rrrci __builtin_lslx_zri
#pragma GCC poison __builtin_lslx_zric __builtin_lslx_zrici __builtin_lslx_zrr __builtin_lslx_zrrc
#pragma GCC poison __builtin_lslx_zrrci __builtin_lsr1_rri __builtin_lsr1_rric __builtin_lsr1_rrici
#pragma GCC poison __builtin_lsr1_rrr __builtin_lsr1_rrrc __builtin_lsr1_rrrci __builtin_lsr1_s_rri
#pragma GCC poison __builtin_lsr1_s_rric __builtin_lsr1_s_rrici __builtin_lsr1_s_rrr
#pragma GCC poison __builtin_lsr1_s_rrrc __builtin_lsr1_s_rrrci __builtin_lsr1_u_rri
#pragma GCC poison __builtin_lsr1_u_rric __builtin_lsr1_u_rrici __builtin_lsr1_u_rrr
#pragma GCC poison __builtin_lsr1_u_rrrc __builtin_lsr1_u_rrrci __builtin_lsr1_zri
#pragma GCC poison __builtin_lsr1_zric __builtin_lsr1_zrici __builtin_lsr1_zrr __builtin_lsr1_zrrc
#pragma GCC poison __builtin_lsr1_zrrci __builtin_lsr1x_rri __builtin_lsr1x_rric
#pragma GCC poison __builtin_lsr1x_rrici __builtin_lsr1x_rrr __builtin_lsr1x_rrrc
#pragma GCC poison __builtin_lsr1x_rrrci __builtin_lsr1x_s_rri __builtin_lsr1x_s_rric
#pragma GCC poison __builtin_lsr1x_s_rrici __builtin_lsr1x_s_rrr __builtin_lsr1x_s_rrrc
#pragma GCC poison __builtin_lsr1x_s_rrrci __builtin_lsr1x_u_rri __builtin_lsr1x_u_rric
#pragma GCC poison __builtin_lsr1x_u_rrici __builtin_lsr1x_u_rrr __builtin_lsr1x_u_rrrc
#pragma GCC poison __builtin_lsr1x_u_rrrci __builtin_lsr1x_zri __builtin_lsr1x_zric
#pragma GCC poison __builtin_lsr1x_zrici __builtin_lsr1x_zrr __builtin_lsr1x_zrrc
#pragma GCC poison __builtin_lsr1x_zrrci __builtin_lsr_add_rrrici __builtin_lsr_add_s_rrrici
#pragma GCC poison __builtin_lsr_add_u_rrrici __builtin_lsr_add_zrri __builtin_lsr_add_zrrici
#pragma GCC poison __builtin_lsr_rric __builtin_lsr_rrici __builtin_lsr_rrrc __builtin_lsr_rrrci
#pragma GCC poison __builtin_lsr_s_rric __builtin_lsr_s_rrici __builtin_lsr_s_rrrc
#pragma GCC poison __builtin_lsr_s_rrrci __builtin_lsr_u_rric __builtin_lsr_u_rrici
#pragma GCC poison __builtin_lsr_u_rrrc __builtin_lsr_u_rrrci __builtin_lsr_zri __builtin_lsr_zric
#pragma GCC poison __builtin_lsr_zrici __builtin_lsr_zrr __builtin_lsr_zrrc __builtin_lsr_zrrci
#pragma GCC poison __builtin_lsrx_rric __builtin_lsrx_rrici __builtin_lsrx_rrrc __builtin_lsrx_rrrci
#pragma GCC poison __builtin_lsrx_s_rric __builtin_lsrx_s_rrici __builtin_lsrx_s_rrrc
#pragma GCC poison __builtin_lsrx_s_rrrci __builtin_lsrx_u_rric __builtin_lsrx_u_rrici
#pragma GCC poison __builtin_lsrx_u_rrrc __builtin_lsrx_u_rrrci __builtin_lsrx_zri
#pragma GCC poison __builtin_lsrx_zric __builtin_lsrx_zrici __builtin_lsrx_zrr __builtin_lsrx_zrrc
#pragma GCC poison __builtin_lsrx_zrrci __builtin_lw_erri __builtin_lw_ersi __builtin_lw_s_erri
#pragma GCC poison __builtin_lw_u_erri __builtin_movd_rrci __builtin_mul_sh_sh_rrrc
#pragma GCC poison __builtin_mul_sh_sh_rrrci __builtin_mul_sh_sh_s_rrrc __builtin_mul_sh_sh_s_rrrci
#pragma GCC poison __builtin_mul_sh_sh_zrr __builtin_mul_sh_sh_zrrc __builtin_mul_sh_sh_zrrci
#pragma GCC poison __builtin_mul_sh_sl_rrrc __builtin_mul_sh_sl_rrrci __builtin_mul_sh_sl_s_rrrc
#pragma GCC poison __builtin_mul_sh_sl_s_rrrci __builtin_mul_sh_sl_zrr __builtin_mul_sh_sl_zrrc
#pragma GCC poison __builtin_mul_sh_sl_zrrci __builtin_mul_sh_uh_rrrc __builtin_mul_sh_uh_rrrci
#pragma GCC poison __builtin_mul_sh_uh_s_rrrc __builtin_mul_sh_uh_s_rrrci __builtin_mul_sh_uh_zrr
#pragma GCC poison __builtin_mul_sh_uh_zrrc __builtin_mul_sh_uh_zrrci __builtin_mul_sh_ul_rrrc
#pragma GCC poison __builtin_mul_sh_ul_rrrci __builtin_mul_sh_ul_s_rrrc __builtin_mul_sh_ul_s_rrrci
#pragma GCC poison __builtin_mul_sh_ul_zrr __builtin_mul_sh_ul_zrrc __builtin_mul_sh_ul_zrrci
#pragma GCC poison __builtin_mul_sl_sh_rrrc __builtin_mul_sl_sh_rrrci __builtin_mul_sl_sh_s_rrrc
#pragma GCC poison __builtin_mul_sl_sh_s_rrrci __builtin_mul_sl_sh_zrr __builtin_mul_sl_sh_zrrc
#pragma GCC poison __builtin_mul_sl_sh_zrrci __builtin_mul_sl_sl_rrrc __builtin_mul_sl_sl_rrrci
#pragma GCC poison __builtin_mul_sl_sl_s_rrrc __builtin_mul_sl_sl_s_rrrci __builtin_mul_sl_sl_zrr
#pragma GCC poison __builtin_mul_sl_sl_zrrc __builtin_mul_sl_sl_zrrci __builtin_mul_sl_uh_rrrc
#pragma GCC poison __builtin_mul_sl_uh_rrrci __builtin_mul_sl_uh_s_rrrc __builtin_mul_sl_uh_s_rrrci
#pragma GCC poison __builtin_mul_sl_uh_zrr __builtin_mul_sl_uh_zrrc __builtin_mul_sl_uh_zrrci
#pragma GCC poison __builtin_mul_sl_ul_rrrc __builtin_mul_sl_ul_rrrci __builtin_mul_sl_ul_s_rrrc
#pragma GCC poison __builtin_mul_sl_ul_s_rrrci __builtin_mul_sl_ul_zrr __builtin_mul_sl_ul_zrrc
#pragma GCC poison __builtin_mul_sl_ul_zrrci __builtin_mul_step_rrrici __builtin_mul_uh_uh_rrrc
#pragma GCC poison __builtin_mul_uh_uh_rrrci __builtin_mul_uh_uh_u_rrrc __builtin_mul_uh_uh_u_rrrci
#pragma GCC poison __builtin_mul_uh_uh_zrr __builtin_mul_uh_uh_zrrc __builtin_mul_uh_uh_zrrci
#pragma GCC poison __builtin_mul_uh_ul_rrrc __builtin_mul_uh_ul_rrrci __builtin_mul_uh_ul_u_rrrc
#pragma GCC poison __builtin_mul_uh_ul_u_rrrci __builtin_mul_uh_ul_zrr __builtin_mul_uh_ul_zrrc
#pragma GCC poison __builtin_mul_uh_ul_zrrci __builtin_mul_ul_uh_rrrc __builtin_mul_ul_uh_rrrci
#pragma GCC poison __builtin_mul_ul_uh_u_rrrc __builtin_mul_ul_uh_u_rrrci __builtin_mul_ul_uh_zrr
#pragma GCC poison __builtin_mul_ul_uh_zrrc __builtin_mul_ul_uh_zrrci __builtin_mul_ul_ul_rrrc
#pragma GCC poison __builtin_mul_ul_ul_rrrci __builtin_mul_ul_ul_u_rrrc __builtin_mul_ul_ul_u_rrrci
#pragma GCC poison __builtin_mul_ul_ul_zrr __builtin_mul_ul_ul_zrrc __builtin_mul_ul_ul_zrrci
#pragma GCC poison __builtin_nand_rric __builtin_nand_rrici __builtin_nand_rrif __builtin_nand_rrrc
#pragma GCC poison __builtin_nand_rrrci __builtin_nand_s_rric __builtin_nand_s_rrici
#pragma GCC poison __builtin_nand_s_rrif __builtin_nand_s_rrrc __builtin_nand_s_rrrci
#pragma GCC poison __builtin_nand_u_rric __builtin_nand_u_rrici __builtin_nand_u_rrif
#pragma GCC poison __builtin_nand_u_rrrc __builtin_nand_u_rrrci __builtin_nand_zric
#pragma GCC poison __builtin_nand_zrici __builtin_nand_zrif __builtin_nand_zrr __builtin_nand_zrrc
#pragma GCC poison __builtin_nand_zrrci __builtin_nor_rric __builtin_nor_rrici __builtin_nor_rrif
#pragma GCC poison __builtin_nor_rrrc __builtin_nor_rrrci __builtin_nor_s_rric __builtin_nor_s_rrici
#pragma GCC poison __builtin_nor_s_rrif __builtin_nor_s_rrrc __builtin_nor_s_rrrci
#pragma GCC poison __builtin_nor_u_rric __builtin_nor_u_rrici __builtin_nor_u_rrif
#pragma GCC poison __builtin_nor_u_rrrc __builtin_nor_u_rrrci __builtin_nor_zric __builtin_nor_zrici
#pragma GCC poison __builtin_nor_zrif __builtin_nor_zrr __builtin_nor_zrrc __builtin_nor_zrrci
#pragma GCC poison __builtin_nxor_rric __builtin_nxor_rrici __builtin_nxor_rrif __builtin_nxor_rrrc
#pragma GCC poison __builtin_nxor_rrrci __builtin_nxor_s_rric __builtin_nxor_s_rrici
#pragma GCC poison __builtin_nxor_s_rrif __builtin_nxor_s_rrrc __builtin_nxor_s_rrrci
#pragma GCC poison __builtin_nxor_u_rric __builtin_nxor_u_rrici __builtin_nxor_u_rrif
#pragma GCC poison __builtin_nxor_u_rrrc __builtin_nxor_u_rrrci __builtin_nxor_zric
#pragma GCC poison __builtin_nxor_zrici __builtin_nxor_zrif __builtin_nxor_zrr __builtin_nxor_zrrc
#pragma GCC poison __builtin_nxor_zrrci __builtin_or_rric __builtin_or_rrici __builtin_or_rrif
#pragma GCC poison __builtin_or_rrrc __builtin_or_rrrci __builtin_or_s_rric __builtin_or_s_rrici
#pragma GCC poison __builtin_or_s_rrif __builtin_or_s_rrrc __builtin_or_s_rrrci __builtin_or_u_rric
#pragma GCC poison __builtin_or_u_rrici __builtin_or_u_rrif __builtin_or_u_rrrc __builtin_or_u_rrrci
#pragma GCC poison __builtin_or_zri __builtin_or_zric __builtin_or_zrici __builtin_or_zrif
#pragma GCC poison __builtin_or_zrr __builtin_or_zrrc __builtin_or_zrrci __builtin_orn_rric
#pragma GCC poison __builtin_orn_rrici __builtin_orn_rrif __builtin_orn_rrrc __builtin_orn_rrrci
#pragma GCC poison __builtin_orn_s_rric __builtin_orn_s_rrici __builtin_orn_s_rrif
#pragma GCC poison __builtin_orn_s_rrrc __builtin_orn_s_rrrci __builtin_orn_u_rric
#pragma GCC poison __builtin_orn_u_rrici __builtin_orn_u_rrif __builtin_orn_u_rrrc
#pragma GCC poison __builtin_orn_u_rrrci __builtin_orn_zric __builtin_orn_zrici __builtin_orn_zrif
#pragma GCC poison __builtin_orn_zrr __builtin_orn_zrrc __builtin_orn_zrrci __builtin_release_rici
#pragma GCC poison __builtin_resume_rici __builtin_rol_add_rrrici __builtin_rol_add_s_rrrici
#pragma GCC poison __builtin_rol_add_u_rrrici __builtin_rol_add_zrri __builtin_rol_add_zrrici
#pragma GCC poison __builtin_rol_rric __builtin_rol_rrici __builtin_rol_rrrc __builtin_rol_rrrci
#pragma GCC poison __builtin_rol_s_rric __builtin_rol_s_rrici __builtin_rol_s_rrrc
#pragma GCC poison __builtin_rol_s_rrrci __builtin_rol_u_rric __builtin_rol_u_rrici
#pragma GCC poison __builtin_rol_u_rrrc __builtin_rol_u_rrrci __builtin_rol_zri __builtin_rol_zric
#pragma GCC poison __builtin_rol_zrici __builtin_rol_zrr __builtin_rol_zrrc __builtin_rol_zrrci
#pragma GCC poison __builtin_ror_rric __builtin_ror_rrici __builtin_ror_rrrc __builtin_ror_rrrci
#pragma GCC poison __builtin_ror_s_rric __builtin_ror_s_rrici __builtin_ror_s_rrrc
#pragma GCC poison __builtin_ror_s_rrrci __builtin_ror_u_rric __builtin_ror_u_rrici
#pragma GCC poison __builtin_ror_u_rrrc __builtin_ror_u_rrrci __builtin_ror_zri __builtin_ror_zric
#pragma GCC poison __builtin_ror_zrici __builtin_ror_zrr __builtin_ror_zrrc __builtin_ror_zrrci
#pragma GCC poison __builtin_rsub_rrrc __builtin_rsub_rrrci __builtin_rsub_s_rrrc
#pragma GCC poison __builtin_rsub_s_rrrci __builtin_rsub_u_rrrc __builtin_rsub_u_rrrci
#pragma GCC poison __builtin_rsub_zrr __builtin_rsub_zrrc __builtin_rsub_zrrci __builtin_rsubc_rrr
#pragma GCC poison __builtin_rsubc_rrrc __builtin_rsubc_rrrci __builtin_rsubc_s_rrr
#pragma GCC poison __builtin_rsubc_s_rrrc __builtin_rsubc_s_rrrci __builtin_rsubc_u_rrr
#pragma GCC poison __builtin_rsubc_u_rrrc __builtin_rsubc_u_rrrci __builtin_rsubc_zrr
#pragma GCC poison __builtin_rsubc_zrrc __builtin_rsubc_zrrci __builtin_sats_rr __builtin_sats_rrc
#pragma GCC poison __builtin_sats_rrci __builtin_sats_s_rr __builtin_sats_s_rrc
#pragma GCC poison __builtin_sats_s_rrci __builtin_sats_u_rr __builtin_sats_u_rrc
#pragma GCC poison __builtin_sats_u_rrci __builtin_sats_zr __builtin_sats_zrc __builtin_sats_zrci
#pragma GCC poison __builtin_sb_erii __builtin_sb_erir __builtin_sb_esii __builtin_sb_esir
#pragma GCC poison __builtin_sb_id_erii __builtin_sd_erii __builtin_sd_erir __builtin_sd_esii
#pragma GCC poison __builtin_sd_esir __builtin_sd_id_erii __builtin_sdma_rri __builtin_sh_erii
#pragma GCC poison __builtin_sh_erir __builtin_sh_esii __builtin_sh_esir __builtin_sh_id_erii
#pragma GCC poison __builtin_stop_ci __builtin_sub_rir __builtin_sub_rirc __builtin_sub_rirci
#pragma GCC poison __builtin_sub_rirf __builtin_sub_rric __builtin_sub_rrici __builtin_sub_rrif
#pragma GCC poison __builtin_sub_rrrc __builtin_sub_rrrci __builtin_sub_s_rirc __builtin_sub_s_rirci
#pragma GCC poison __builtin_sub_s_rirf __builtin_sub_s_rric __builtin_sub_s_rrici
#pragma GCC poison __builtin_sub_s_rrif __builtin_sub_s_rrrc __builtin_sub_s_rrrci __builtin_sub_ssi
#pragma GCC poison __builtin_sub_sss __builtin_sub_u_rirc __builtin_sub_u_rirci __builtin_sub_u_rirf
#pragma GCC poison __builtin_sub_u_rric __builtin_sub_u_rrici __builtin_sub_u_rrif
#pragma GCC poison __builtin_sub_u_rrrc __builtin_sub_u_rrrci __builtin_sub_zir __builtin_sub_zirc
#pragma GCC poison __builtin_sub_zirci __builtin_sub_zirf __builtin_sub_zric __builtin_sub_zrici
#pragma GCC poison __builtin_sub_zrif __builtin_sub_zrr __builtin_sub_zrrc __builtin_sub_zrrci
#pragma GCC poison __builtin_subc_rir __builtin_subc_rirc __builtin_subc_rirci __builtin_subc_rirf
#pragma GCC poison __builtin_subc_rric __builtin_subc_rrici __builtin_subc_rrif __builtin_subc_rrr
#pragma GCC poison __builtin_subc_rrrc __builtin_subc_rrrci __builtin_subc_s_rirc
#pragma GCC poison __builtin_subc_s_rirci __builtin_subc_s_rirf __builtin_subc_s_rric
#pragma GCC poison __builtin_subc_s_rrici __builtin_subc_s_rrif __builtin_subc_s_rrr
#pragma GCC poison __builtin_subc_s_rrrc __builtin_subc_s_rrrci __builtin_subc_u_rirc
#pragma GCC poison __builtin_subc_u_rirci __builtin_subc_u_rirf __builtin_subc_u_rric
#pragma GCC poison __builtin_subc_u_rrici __builtin_subc_u_rrif __builtin_subc_u_rrr
#pragma GCC poison __builtin_subc_u_rrrc __builtin_subc_u_rrrci __builtin_subc_zir
#pragma GCC poison __builtin_subc_zirc __builtin_subc_zirci __builtin_subc_zirf __builtin_subc_zric
#pragma GCC poison __builtin_subc_zrici __builtin_subc_zrif __builtin_subc_zrr __builtin_subc_zrrc
#pragma GCC poison __builtin_subc_zrrci __builtin_sw_erii __builtin_sw_erir __builtin_sw_esii
#pragma GCC poison __builtin_sw_esir __builtin_sw_id_erii __builtin_swapd_rrci __builtin_time_cfg_rr
#pragma GCC poison __builtin_time_cfg_rrci __builtin_time_cfg_s_rr __builtin_time_cfg_s_rrci
#pragma GCC poison __builtin_time_cfg_u_rr __builtin_time_cfg_u_rrci __builtin_time_cfg_zr
#pragma GCC poison __builtin_time_cfg_zrci __builtin_time_r __builtin_time_rci __builtin_time_s_r
#pragma GCC poison __builtin_time_s_rci __builtin_time_u_r __builtin_time_u_rci __builtin_time_z
#pragma GCC poison __builtin_time_zci __builtin_xor_rric __builtin_xor_rrici __builtin_xor_rrif
#pragma GCC poison __builtin_xor_rrrc __builtin_xor_rrrci __builtin_xor_s_rric __builtin_xor_s_rrici
#pragma GCC poison __builtin_xor_s_rrif __builtin_xor_s_rrrc __builtin_xor_s_rrrci
#pragma GCC poison __builtin_xor_u_rric __builtin_xor_u_rrici __builtin_xor_u_rrif
#pragma GCC poison __builtin_xor_u_rrrc __builtin_xor_u_rrrci __builtin_xor_zri __builtin_xor_zric
#pragma GCC poison __builtin_xor_zrici __builtin_xor_zrif __builtin_xor_zrr __builtin_xor_zrrc
#pragma GCC poison __builtin_xor_zrrci

#endif  // PE_BUILT_INS_H
