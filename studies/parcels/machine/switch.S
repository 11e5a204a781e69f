# machine_step: the start of a basic block. r11 has the block's record. All other registers and the
# flags stay.
        .text
        .globl  machine_step
machine_step:
        pushfq
        pushq   %rax
        pushq   %rcx
        pushq   %rdx
        pushq   %rsi
        pushq   %rdi
        pushq   %r8
        pushq   %r9
        pushq   %r10
        pushq   %rbx
        movq    %rsp, %rbx
        andq    $-16, %rsp
        movq    %r11, %rdi
        call    machine_block
        movq    %rbx, %rsp
        popq    %rbx
        popq    %r10
        popq    %r9
        popq    %r8
        popq    %rdi
        popq    %rsi
        popq    %rdx
        popq    %rcx
        popq    %rax
        popfq
        ret

# machine_switch(void **from, void *to): saves the stack pointer in *from and continues on the stack
# `to`. The vector registers are saved too, because machine_step may switch anywhere in a program.
        .globl  machine_switch
machine_switch:
        pushq   %rbx
        pushq   %rbp
        pushq   %r12
        pushq   %r13
        pushq   %r14
        pushq   %r15
        subq    $256, %rsp
        .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        movups  %xmm\n, 16 * \n(%rsp)
        .endr
        movq    %rsp, (%rdi)
        movq    %rsi, %rsp
        .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        movups  16 * \n(%rsp), %xmm\n
        .endr
        addq    $256, %rsp
        popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbp
        popq    %rbx
        ret
        .section .note.GNU-stack,"",@progbits
