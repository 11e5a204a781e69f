// A PE program, as dpu_load reads it from a file. runtime/calls.h describes the files of dpuemu's
// compiler; those of the vendor's compiler are machine code (isa/).
#pragma once

#include <dpu.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/chip.h"
#include "isa/core.h"
#include "isa/translation.h"
#include "runtime/calls.h"

namespace dpuemu {

/// The addresses of one PE's program, all below 2 GiB: the address of WRAM, which the page of
/// mutexes follows, and the address of the text.
struct PePlace {
  uint8_t *wram;
  uint8_t *text;
  /// Returns the counters of `dpuemu profile`.
  uint8_t *counters() const { return text + PE_TEXT_BYTES; }
};

/// Returns the address of memory below 2 GiB, as PE programs see it.
inline uint32_t address_of(const uint8_t *pointer) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer));
}

/// A function of the emulator for a row of PE_CHECK_TABLE: the arguments, and the place of the
/// call.
using CheckCallback = void (*)(uint32_t, uint32_t, uint32_t, uint32_t);

std::string hexadecimal(uint64_t value);

class Program {
 public:
  /// Errors: DPU_ERR_ELF_INVALID_FILE if the file is not a program of these compilers,
  /// DPU_ERR_INVALID_{WRAM,IRAM,MRAM}_ACCESS if a section does not fit in its memory,
  /// DPU_ERR_TOO_MANY_TASKLETS. name: of the file, for explanation.h.
  static dpu_error_t parse(std::span<const uint8_t> file, const std::string &name,
                           std::shared_ptr<const Program> &out);

  /// Checks that the program fits into a PE of the chip. Errors: DPU_ERR_TOO_MANY_TASKLETS,
  /// DPU_ERR_INVALID_{WRAM,IRAM}_ACCESS.
  dpu_error_t check_fit(const Chip &chip) const;

  uint32_t tasklets() const { return tasklets_; }
  /// Returns the number of stack bytes that the program declares for the tasklet.
  uint32_t stack_bytes(uint32_t tasklet) const { return stack_bytes_[tasklet]; }
  /// Returns the WRAM address of the heap, or 0 if the program has none.
  uint32_t heap_address() const { return heap_address_; }
  /// Returns the address at which tasklets start.
  uint32_t entry(const PePlace &place) const { return address_of(place.text) + entry_offset_; }
  bool prints() const { return stdout_bytes_ != 0; }
  /// Returns the capacity of the log in bytes.
  uint32_t stdout_bytes() const { return stdout_bytes_; }
  uint32_t text_bytes() const { return static_cast<uint32_t>(text_.size()); }
  /// Returns the instructions of a program of the vendor's compiler, or nullptr for a program that
  /// runs on the host's processor. Such a program has no text.
  const isa::Code *code() const { return code_.get(); }
  /// Returns the same instructions, to execute. Requires code() != nullptr.
  const isa::Translation &translation() const { return *translation_; }

  /// Returns the symbol with this name, or nullptr if the program has no such symbol.
  const dpu_symbol_t *find(std::string_view name) const;
  const std::unordered_map<std::string, dpu_symbol_t> &symbols() const { return symbols_; }

  /// Returns the variable at an address of the program file (of WRAM, MRAM or a mutex), such as
  /// "buffer" or "buffer + 0x10", or "".
  std::string variable_at(uint32_t address) const;
  /// Returns the number in hexadecimal, and the variable at the address in brackets.
  std::string address_and_variable(uint32_t shown, uint32_t address) const;
  /// Returns the function and the source line of the instruction at an address of the program file,
  /// such as "main (task.c:12)", or "".
  std::string function_at(uint32_t address) const;
  /// A function or a label of the text.
  struct TextSymbol {
    uint32_t address, bytes;  // address: in the program file
    bool is_label;
    std::string name;
  };
  /// Returns the functions and labels by address; functions come before labels.
  const std::vector<TextSymbol> &text_symbols() const { return text_symbols_; }
  /// A row of section .debug_pe_counters: addresses of the program file, and the instructions per
  /// count.
  struct CounterRow {
    uint32_t counter, address;
    int32_t instructions;
  };
  std::span<const CounterRow> counter_rows() const { return counter_rows_; }
  /// Returns the size of the counters, a multiple of 8; 0 if the program is not compiled for
  /// `dpuemu profile`.
  uint32_t counter_bytes() const { return counter_bytes_; }
  /// Returns the contents of section .debug_line.
  std::span<const uint8_t> debug_line() const { return debug_line_; }
  /// Returns the text at an offset of section .pe_strings.
  std::string text_at(uint32_t offset) const;
  /// Returns the contents of section .debug_frame.
  std::span<const uint8_t> debug_frame() const { return debug_frame_; }

  /// Returns the program file if a debugger traced the process when dpu_load read the file, else
  /// nothing.
  std::span<const uint8_t> file() const { return file_; }

  /// The functions of the emulator to which the program jumps: for runtime calls, in waiting loops,
  /// and for the calls of PE_CHECK_TABLE (empty without checks).
  struct Gates {
    void (*call)();
    void (*yield)();
    std::span<const CheckCallback> checks;
  };
  void write_text(const PePlace &place, const Gates &gates) const;
  /// Returns the begin and the end of the section with the variables __host.
  std::pair<uint32_t, uint32_t> host_variables() const { return host_variables_; }
  /// Returns whether the program is compiled for `dpuemu check`.
  bool is_checked() const { return check_offset_ != 0; }
  /// Writes the initial values of all variables in WRAM, and the clock of the chip. The WRAM heap
  /// keeps its contents. Frees the mutexes of machine code: such a program does not at its start.
  void write_wram(const PePlace &place, const Chip &chip) const;

  /// A part of MRAM with initialised variables.
  struct MramPart {
    uint32_t offset;
    std::vector<uint8_t> bytes;
  };
  const std::vector<MramPart> &mram() const { return mram_; }

  /// The name of the symbol at which free MRAM begins.
  static constexpr std::string_view kHeapName = DPU_MRAM_HEAP_POINTER_NAME;

 private:
  enum class Area : uint8_t { kWram, kText, kMram, kFixed };
  /// A word of an image that holds an address or a distance to an address.
  struct Relocation {
    uint32_t offset;
    bool is_distance;  // distance from a place in the same image
    bool is_wide;      // the word has 64 bits
    Area target;
  };
  friend class ProgramReader;

  static void relocate(uint8_t *image, const std::vector<Relocation> &relocations, Area own,
                       const PePlace &place);

  std::vector<uint8_t> text_, wram_;  // the images as linked
  std::unique_ptr<const isa::Code> code_;
  std::unique_ptr<const isa::Translation> translation_;
  std::vector<Relocation> text_relocations_, wram_relocations_;
  std::vector<MramPart> mram_;
  std::unordered_map<std::string, dpu_symbol_t> symbols_;
  std::vector<TextSymbol> text_symbols_;
  std::vector<uint8_t> debug_line_, debug_frame_, texts_;  // contents of sections
  std::vector<CounterRow> counter_rows_;
  std::vector<uint8_t> file_;
  std::pair<uint32_t, uint32_t> host_variables_ = {0, 0};
  uint32_t tasklets_ = 0;
  uint32_t wram_end_ = 0, mutexes_ = 0,
           instructions_ = 0;  // the memories that the program needs; instructions: estimated
  uint32_t stack_bytes_[PE_MAX_TASKLETS] = {};
  uint32_t entry_offset_ = 0, heap_address_ = 0;
  uint32_t gate_offset_ = 0, check_offset_ = 0;  // check_offset_: 0 without checks
  uint32_t stdout_bytes_ = 0;
  uint32_t counter_bytes_ = 0;
};

/// Parses a program once: for files with equal bytes, returns the same object, which exists as long
/// as the process. Errors: those of Program::parse.
dpu_error_t find_or_parse_program(std::span<const uint8_t> file, const std::string &name,
                                  const Program *&out);

}  // namespace dpuemu
