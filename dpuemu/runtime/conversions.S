/// conversions.S: conversions of a double in xmm15 to an integer in r11, with the results of
/// compiler-rt for a DPU (conversions.py calls them). All other registers and the flags keep their
/// values. A NaN counts as positive, because a DPU makes positive NaNs, and x86-64 negative ones.

/// rax: the bits of the number, r11: its biased exponent.
#define BEGIN(name)                     \
  .section .text.name, "ax", @progbits; \
  .globl name;                          \
  .type name, @function;                \
name:                                   \
  pushfq;                               \
  pushq %rax;                           \
  movq %xmm15, %rax;                    \
  movq %rax, %r11;                      \
  shrq $52, %r11;                       \
  andl $0x7FF, %r11d;
#define END(name) \
9:                \
  popq %rax;      \
  popfq;          \
  ret;            \
  .size name, . - name

#define BIAS 1023

/// From 2^32, the nearest limit; below, the low 32 bits.
BEGIN(__pe_to_int32)
  cmpl $(BIAS + 32), %r11d
  jae 1f
  cvttsd2siq %xmm15, %r11
  jmp 9f
1:
  ucomisd %xmm15, %xmm15
  jp 2f
  testq %rax, %rax
  js 3f
2:
  movl $0x7FFFFFFF, %r11d
  jmp 9f
3:
  movl $0x80000000, %r11d
  END(__pe_to_int32)

/// The nearest limit.
BEGIN(__pe_to_uint32)
  ucomisd %xmm15, %xmm15
  jp 2f
  testq %rax, %rax
  js 1f
  cmpl $(BIAS + 32), %r11d
  jae 2f
  cvttsd2siq %xmm15, %r11
  jmp 9f
1:
  xorl %r11d, %r11d
  jmp 9f
2:
  movl $-1, %r11d
  END(__pe_to_uint32)

/// The magnitude as an unsigned integer, at most 2^64 - 1, with the sign of the number.
BEGIN(__pe_to_int64)
  cmpl $(BIAS + 63), %r11d
  jb 1f
  ja 2f
  shlq $11, %rax
  btsq $63, %rax
  movq %rax, %r11
  movq %xmm15, %rax
  testq %rax, %rax
  jns 9f
  negq %r11
  jmp 9f
1:
  cvttsd2siq %xmm15, %r11
  jmp 9f
2:
  movq $-1, %r11
  ucomisd %xmm15, %xmm15
  jp 9f
  testq %rax, %rax
  jns 9f
  movl $1, %r11d
  END(__pe_to_int64)

/// The nearest limit. gcc subtracts 2^63 from larger numbers first, and adds it to the result.
BEGIN(__pe_to_uint64)
  ucomisd %xmm15, %xmm15
  jp 2f
  testq %rax, %rax
  js 1f
  cmpl $(BIAS + 63), %r11d
  jae 3f
  cvttsd2siq %xmm15, %r11
  jmp 9f
1:
  xorl %r11d, %r11d
  jmp 9f
2:
  movq $-1, %r11
  jmp 9f
3:
  movabsq $0x7FFFFFFFFFFFFFFF, %r11
  END(__pe_to_uint64)

  .section .note.GNU-stack, "", @progbits
