// A PE program, as dpu_load reads it from a file. pe/calls.h describes the file.
#pragma once

#include <dpu.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pe/calls.h"

namespace dpuemu {

/// Addresses of one PE's program, below 2 GiB: WRAM followed by the page of mutexes, and text.
struct PePlace {
  uint8_t *wram;
  uint8_t *text;
};

class Program {
 public:
  /// Errors: DPU_ERR_ELF_INVALID_FILE if it is not from the stand-in compiler, DPU_ERR_INVALID_{WRAM,IRAM,MRAM}_ACCESS if it is
  /// larger than that memory, DPU_ERR_TOO_MANY_TASKLETS.
  static dpu_error_t parse(std::span<const uint8_t> file, std::shared_ptr<const Program> &out);

  uint32_t tasklets() const { return tasklets_; }
  /// Returns the declared stack bytes of the tasklet.
  uint32_t stack_bytes(uint32_t tasklet) const { return stack_bytes_[tasklet]; }
  /// The address at which tasklets start.
  uint32_t entry(const PePlace &place) const { return address_of(place.text) + entry_offset_; }
  bool prints() const { return stdout_bytes_ != 0; }
  /// Capacity of the log in bytes.
  uint32_t stdout_bytes() const { return stdout_bytes_; }
  uint32_t text_bytes() const { return static_cast<uint32_t>(text_.size()); }

  /// Returns nullptr if there is no such symbol.
  const dpu_symbol_t *find(std::string_view name) const;

  /// Writes the program's text, which then calls `gate`.
  void write_text(const PePlace &place, void (*gate)()) const;
  /// Writes the initial contents of all variables in WRAM, and clears the mutexes. The heap keeps its contents.
  void write_wram(const PePlace &place) const;

  /// Initialised variables in MRAM.
  struct MramPart {
    uint32_t offset;
    std::vector<uint8_t> bytes;
  };
  const std::vector<MramPart> &mram() const { return mram_; }

 private:
  enum class Area : uint8_t { kWram, kText, kFixed };
  /// A word of an image that holds an address, or a distance to one.
  struct Relocation {
    uint32_t offset;
    bool is_distance;  // distance from a place in the same image
    bool is_wide;      // the word has 64 bits
    Area target;
  };
  friend class ElfReader;

  static uint32_t address_of(const uint8_t *pointer) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer)); }
  static void relocate(uint8_t *image, const std::vector<Relocation> &relocations, Area own, const PePlace &place);

  std::vector<uint8_t> text_, wram_;  // the images as linked
  std::vector<Relocation> text_relocations_, wram_relocations_;
  std::vector<MramPart> mram_;
  std::unordered_map<std::string, dpu_symbol_t> symbols_;
  uint32_t tasklets_ = 0;
  uint32_t stack_bytes_[PE_MAX_TASKLETS] = {};
  uint32_t entry_offset_ = 0;
  uint32_t gate_offset_ = 0;
  uint32_t stdout_bytes_ = 0;
};

/// Parses a program once: equal bytes return the same object, which lives as long as the process. Errors: the same as Program::parse.
dpu_error_t find_or_parse_program(std::span<const uint8_t> file, const Program *&out);

}  // namespace dpuemu
