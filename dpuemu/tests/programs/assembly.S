// Functions in DPU assembly, for assembly.c.
#include "assembly.h"
    .file "assembly.S"
    .set words, TABLE_BYTES / 4
    .equ last, words - 1

#define FIRST r2
    .macro ADD_TWICE FIRST:req value
    add \FIRST, \FIRST, \value
    ADD \FIRST, \value
    .endm
    .macro ADD to value
    add \to, \to, \value, ?true, .+1
    .endm

    .section .text.sum_words, "ax", @progbits
    .globl sum_words
    .type sum_words, @function
sum_words:                 // r0: words, r1: their number
    .cfi_startproc
    move r2, 0
    jeq r1, 0, 2f
1:  lw r3, r0, 0
    lsr r4, r3, 31
    asr r3, r3, 1
    ADD_TWICE r2, r3
    lw r3, r0, 0
    and r3, r3, 1
    add r2, r2, r3
    add r0, r0, 4; sub r1, r1, 1, nz, 1b
2:  move r0, r2
    jump r23
    .cfi_endproc
    .size sum_words, .-sum_words

    .text
    .global factorial
factorial:                 /* calls itself, and
                              a function that uses r8 */
    jgtu r0, 1, .Lmore
    move r0, 1
    jump r23
.Lmore:
    sd r22, 8, d22
    add r22, r22, 16
    sw r22, -16, r0
    add r0, r0, -1
    call r23, factorial
    lw r1, r22, -16
    call r10, .Lproduct    // returns by r10, and has its result in r9
    move r0, r9
    ld d22, r22, -8
    jump r23

.Lproduct:
    move r9, 0
    move r8, r1
1:  jz r8, product_end
    add r9, r9, r0
    sub r8, r8, 1, true, 1b
product_end:
    jump r10

    .globl uses_all
uses_all:                  // 8 arguments: r0 + 2 * r1 + ... + 128 * r7
    lsl_add r6, r6, r7, 1
    lsl_add r5, r5, r6, 1
    lsl_add r4, r4, r5, 1
    lsl_add r3, r3, r4, 1
    lsl_add r2, r2, r3, 1
    lsl_add r1, r1, r2, 1
    lsl_add r0, r0, r1, 1
    jump r23

    .globl apply
apply:                     // r0: a C function, r1: its argument; returns f(f(arg)) + in_c(arg)
    sd r22, 16, d22
    sd r22, 8, d14
    sw r22, 0, r16
    add r22, r22, 24
    move r14, r0
    move r16, r1
    move r0, r1
    call r23, r14
    call r23, r14
    move r15, r0
    move r0, r16
    call r23, in_c
    add r0, r0, r15
    lw r16, r22, -24
    ld d14, r22, -16
    ld d22, r22, -8
    jump r23

    .globl next
next:                      // continues in C
    add r0, r0, 1
    jump in_c

    .globl choose
choose:                    // continues in assembly
    jltu r0, 10, next
    move r1, table
    lw r0, r1, last * 4
    lw r2, zero, table + 4
    sub r0, r0, r2
    sw zero, result, r0
    move r0, sum_words
    jump r23

    .globl wrong_return
wrong_return:
    move r1, 4
    jump r1
    .globl changes_r15
changes_r15:
    move r15, 4
    jump r23

    .globl spaces
spaces:                    // compares bytes of strings with ';' and "//"
    move r1, string
1:  lbu r2, r1, 0
    jz r2, 2f
    add r0, r0, 1
    add r1, r1, 1, true, 1b
2:  jump r23

    .data
    .p2align 3
    .globl table
table:
    .word 5, 70, last
    .byte 1; .short 0x302; .byte 4
    .quad 0x1122334455667788
    .size table, .-table
string: .asciz "a;b//c /* d */ words"
    .bss
    .globl result
    .align 4
result: .zero 4
    .section .debug_unused, "", @progbits
    .long .Lnowhere - .Lmore
