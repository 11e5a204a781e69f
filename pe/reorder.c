/* PE-assisted reordering (PID-Comm, ISCA 2024, section V-A): permutes the blocks inside every part of a window, each PE by its own numbers.
 *
 * One program for all: the host says what to do in pidcomm_reorder_job. It defines no MRAM variable and does not print, so MRAM stays as it
 * is but for the output. A launch without a job, by a caller that has not loaded its own program again, ends with a fault.
 *
 * A piece of work is read as a whole before it is written and no two share a byte, so in place needs no more than that. */
#include "reorder.h"

#include <alloc.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <perfcounter.h>

/* The largest DMA transfer. A tasklet has room for one that comes and one that goes. */
#define DMA_BYTES 2048u
#define BUFFER_BYTES (2 * DMA_BYTES)

__host struct pidcomm_reorder_job pidcomm_reorder_job;

BARRIER_INIT(everybody, NR_TASKLETS);

/* Jobs work on copies of their numbers, in registers. */
typedef struct pidcomm_reorder_job job_t;

static inline uint32_t source_of(const job_t *job, uint32_t j) { return (job->first + j * job->step) & (job->ways - 1); }

static inline void read_mram(uint32_t from, uint8_t *to, uint32_t bytes) { mram_read((const __mram_ptr void *)(uintptr_t)from, to, bytes); }
static inline void write_mram(const uint8_t *from, uint32_t to, uint32_t bytes) {
  mram_write(from, (__mram_ptr void *)(uintptr_t)to, bytes);
}

/* Whole parts, as many as one transfer holds: contiguous there and back, and permuted in WRAM. */
static void reorder_small_parts(const job_t *job, uint8_t *buffer) {
  const uint32_t part_bytes = job->block_bytes * job->ways;
  const uint32_t parts_at_once = DMA_BYTES / part_bytes;
  const uint32_t words = job->block_bytes / 8;
  for (uint32_t part = me() * parts_at_once; part < job->parts; part += NR_TASKLETS * parts_at_once) {
    const uint32_t parts = job->parts - part < parts_at_once ? job->parts - part : parts_at_once;
    const uint32_t offset = part * part_bytes, bytes = parts * part_bytes;
    read_mram(job->from + offset, buffer, bytes);
    uint64_t *out = (uint64_t *)(buffer + DMA_BYTES);
    for (const uint8_t *in = buffer; in < buffer + bytes; in += part_bytes)
      for (uint32_t j = 0; j < job->ways; ++j) {
        const uint64_t *block = (const uint64_t *)(in + source_of(job, j) * job->block_bytes);
        for (uint32_t w = 0; w < words; ++w) *out++ = block[w];
      }
    write_mram(buffer + DMA_BYTES, job->to + offset, bytes);
  }
}

/* The same piece of every block of a part: permuted by where it is written. */
static void reorder_large_blocks(const job_t *job, uint8_t *buffer) {
  const uint32_t room = BUFFER_BYTES / job->ways;
  const uint32_t piece_bytes = room < DMA_BYTES ? room : DMA_BYTES;
  const uint32_t part_bytes = job->block_bytes * job->ways;
  const uint32_t pieces = (job->block_bytes + piece_bytes - 1) / piece_bytes;
  uint32_t part = 0;
  for (uint32_t piece = me(); part < job->parts; piece += NR_TASKLETS) {
    while (piece >= pieces) {
      piece -= pieces;
      if (++part == job->parts) return;
    }
    const uint32_t offset = piece * piece_bytes;
    const uint32_t left = job->block_bytes - offset, bytes = left < piece_bytes ? left : piece_bytes;
    const uint32_t from = job->from + part * part_bytes + offset, to = job->to + part * part_bytes + offset;
    for (uint32_t j = 0; j < job->ways; ++j) read_mram(from + source_of(job, j) * job->block_bytes, buffer + j * piece_bytes, bytes);
    for (uint32_t j = 0; j < job->ways; ++j) write_mram(buffer + j * piece_bytes, to + j * job->block_bytes, bytes);
  }
}

int main(void) {
  const job_t job = pidcomm_reorder_job;
  if (!job.is_armed) halt();
  if (me() == 0) {
    perfcounter_config(COUNT_CYCLES, true);
    mem_reset();
  }
  barrier_wait(&everybody);
  if (job.parts != 0) {
    uint8_t *const buffer = mem_alloc(BUFFER_BYTES);
    if (job.block_bytes * job.ways <= DMA_BYTES)
      reorder_small_parts(&job, buffer);
    else
      reorder_large_blocks(&job, buffer);
  }
  barrier_wait(&everybody);
  if (me() == 0) {
    pidcomm_reorder_job.cycles = perfcounter_get();
    pidcomm_reorder_job.is_armed = 0;
  }
  return 0;
}
