// Makes the DMA calls that the host lists, one after the other.
#include <mram.h>
#include <stdint.h>

__host struct {
  uint32_t is_write;
  uint32_t mram;  // address
  uint32_t wram;  // offset in `buffer`
  uint32_t bytes;
} calls[8];
__host uint32_t count;
__host uint32_t ended;
__host uint32_t moves_beyond;  // if not 0: the offset of the WRAM address from the start of WRAM
__host uint8_t buffer[8192];

// __sys_wram_end is the end of WRAM, 64 KiB.
extern uint8_t __sys_wram_end[];

int main(void) {
  for (uint32_t i = 0; i < count; ++i) {
    uint8_t *wram =
        moves_beyond != 0 ? __sys_wram_end - 65536 + moves_beyond : buffer + calls[i].wram;
    if (calls[i].is_write)
      mram_write(wram, (__mram_ptr void *)calls[i].mram, calls[i].bytes);
    else
      mram_read((__mram_ptr void *)calls[i].mram, wram, calls[i].bytes);
  }
  ++ended;
  return 0;
}
