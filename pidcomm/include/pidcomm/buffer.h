/* buffer.h: arrays in the MRAM of PEs. The library chooses their places, so a program needs no
 * offsets.
 *
 *   pidcomm_buffer *grad;
 *   PIDCOMM_CHECK(pidcomm_buffer_create(cube, "grad", 1024, PIDCOMM_FLOAT32, &grad));
 *   PIDCOMM_CHECK(pidcomm_buffer_write(cube, grad, rows, sizeof rows));
 *   PIDCOMM_CHECK(pidcomm_buffer_run(cube, PIDCOMM_ALLREDUCE, "10", grad, grad, PIDCOMM_SUM));
 *   PIDCOMM_CHECK(pidcomm_buffer_read(cube, grad, rows, sizeof rows));
 *   pidcomm_buffer_destroy(grad);
 *
 * A buffer has `count` elements at the same MRAM byte of every PE of a set, so every hypercube of
 * the set can use it. The library places buffers from the end of MRAM downwards: windows at offsets
 * from the heap base and the heap of PE programs use the other end. A buffer occupies whole words
 * of 8 bytes; the bytes behind its elements are padding. Nothing checks that windows at offsets
 * stay apart from buffers. A program that is loaded later does not change a buffer unless its
 * variables reach the buffer; calls on the buffer then return ERR_WINDOW. On real DIMMs, these
 * functions wait for earlier work of the set. Destroy the buffers of a set before dpu_free. */
#ifndef PIDCOMM_BUFFER_H
#define PIDCOMM_BUFFER_H

#include <pidcomm/pidcomm.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pidcomm_buffer pidcomm_buffer;

/* Creates a buffer of `count` elements of `type` (a pidcomm_type) on all PEs of the set of the
 * hypercube, and stores it in *buffer. name: for error sentences. The content is undefined. Errors:
 * ERR_ARGUMENT (a pointer is null, count is 0), ERR_TYPE, ERR_MEMORY (MRAM has no place for the
 * buffer: the error sentence lists the buffers of these PEs), ERR_SET, ERR_DEVICE. */
PIDCOMM_API int pidcomm_buffer_create(pidcomm_hypercube *cube, const char *name, size_t count,
                                      int type, pidcomm_buffer **buffer);

/* Stores in *buffer the MRAM variable `name` of the loaded program as a buffer with elements of
 * `type`. After another program has been loaded, destroy the buffer and get it again. Waits for
 * earlier work of the set. Errors: those of pidcomm_symbol_window, ERR_TYPE, ERR_SIZE (the variable
 * is not a whole number of elements). */
PIDCOMM_API int pidcomm_buffer_of_variable(pidcomm_hypercube *cube, const char *name, int type,
                                           pidcomm_buffer **buffer);

/* Stores in *slice the `count` elements of a buffer from element `first` on. The slice has the
 * memory of the buffer, which exists until the last of them is destroyed. Errors: ERR_ARGUMENT (a
 * pointer is null), ERR_WINDOW (the slice passes the end of the buffer). */
PIDCOMM_API int pidcomm_buffer_slice(const pidcomm_buffer *buffer, size_t first, size_t count,
                                     pidcomm_buffer **slice);

/* Releases a buffer or a slice; `buffer` may be NULL. Destroying the last of them frees the
 * MRAM. No call may use the buffer then. */
PIDCOMM_API void pidcomm_buffer_destroy(pidcomm_buffer *buffer);

/* Return the number of elements per PE; the window for `src` and `dst` of a pidcomm_request; and
 * the address in PE programs. Each returns 0 if buffer is NULL. */
PIDCOMM_API size_t pidcomm_buffer_count(const pidcomm_buffer *buffer);
PIDCOMM_API size_t pidcomm_buffer_window(const pidcomm_buffer *buffer);
PIDCOMM_API uint32_t pidcomm_buffer_address(const pidcomm_buffer *buffer);

/* Write or read a buffer. `host` has one row of `count` elements for every PE of the hypercube, in
 * the order of PE numbers and without padding; host_bytes is its size. Errors: those of
 * pidcomm_write and pidcomm_read, ERR_HOST_BUFFER (host_bytes has another value), ERR_WINDOW (a
 * slice does not begin at a word of 8 bytes, or ends within a word that has other elements). */
PIDCOMM_API int pidcomm_buffer_write(pidcomm_hypercube *cube, const pidcomm_buffer *buffer,
                                     const void *host, size_t host_bytes);
PIDCOMM_API int pidcomm_buffer_read(pidcomm_hypercube *cube, const pidcomm_buffer *buffer,
                                    void *host, size_t host_bytes);

/* Stores in *request the request of a collective on buffers, for pidcomm_run, pidcomm_irun,
 * pidcomm_validate and the calls over hosts. in, out: buffers of one type, whose numbers of
 * elements fit the collective: an input or output of N blocks has N times the elements of a block.
 * in == out, or slices that begin at the same element, work in place. If the input or the output of
 * the collective is in host rows, `in` or `out` is NULL; set host and host_bytes of the request
 * yourself, with rows of whole words. `op` is ignored if the collective takes none. The request
 * borrows `mask`. Errors: ERR_ARGUMENT (a pointer is null or is not, the collective is unknown),
 * ERR_MASK, ERR_TYPE (the buffers have different types), ERR_SIZE (the numbers of elements do not
 * fit), ERR_WINDOW. */
PIDCOMM_API int pidcomm_buffer_request(pidcomm_hypercube *cube, int collective, const char *mask,
                                       const pidcomm_buffer *in, const pidcomm_buffer *out, int op,
                                       pidcomm_request *request);

/* Runs a collective from buffer to buffer with default options. Errors: those of
 * pidcomm_buffer_request and pidcomm_run. */
PIDCOMM_API int pidcomm_buffer_run(pidcomm_hypercube *cube, int collective, const char *mask,
                                   const pidcomm_buffer *in, const pidcomm_buffer *out, int op);

#ifdef __cplusplus
}
#endif

#endif /* PIDCOMM_BUFFER_H */
