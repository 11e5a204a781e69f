// The interface is the one of GDB's manual, "JIT Compilation Interface":
// a list of object files in memory, and a function in which the debugger sets a breakpoint.
#include "machine/debugger.h"

#include <elf.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/address_map.h"
#include "machine/rank.h"

extern "C" {

struct jit_code_entry {
  jit_code_entry *next_entry, *prev_entry;
  const char *symfile_addr;
  uint64_t symfile_size;
};

struct jit_descriptor {
  uint32_t version, action_flag;
  jit_code_entry *relevant_entry, *first_entry;
};

// Protected, because another library of the process may define the same names.
__attribute__((visibility("protected"))) jit_descriptor __jit_debug_descriptor = {1, 0, nullptr,
                                                                                  nullptr};

__attribute__((noinline, visibility("protected"))) void __jit_debug_register_code() {
  __asm__ volatile("" ::: "memory");
}

/// The state of the machine, for debuggers.
struct dpuemu_debug_state_t {
  dpuemu::DebuggedRun *runs;
  uint64_t unwritten;  // the value of unwritten bytes of MRAM
  struct {
    const uint8_t *region;
    const uint8_t *wram[dpuemu::kDpusPerRank];  // nullptr: not used yet
  } ranks[DPUEMU_MAX_RANKS];
};
__attribute__((visibility("protected"))) dpuemu_debug_state_t __dpuemu_debug_state = {};

/// The debugger sets a breakpoint here. is_cause: whether the tasklet's last instruction or call is
/// the fault.
__attribute__((noinline, visibility("protected"))) void __dpuemu_debug_fault(
    const dpuemu::DebuggedRun *run, uint64_t tasklet, const char *reason, uint64_t is_cause) {
  __asm__ volatile("" ::"r"(run), "r"(tasklet), "r"(reason), "r"(is_cause) : "memory");
}
}

namespace dpuemu {
namespace {

constexpr size_t kMostPes = 64;
enum Action : uint32_t { kRegister = 1, kUnregister = 2 };

struct Announcement {
  std::vector<uint8_t> object;
  jit_code_entry entry;
};

std::mutex mutex;  // guards the list and the announcements
// By the address of text. Never destroyed, as the machine.
auto &announcements = *new std::map<const uint8_t *, std::unique_ptr<Announcement>>;

void notify(Action action, jit_code_entry *entry) {
  __jit_debug_descriptor.action_flag = action;
  __jit_debug_descriptor.relevant_entry = entry;
  __jit_debug_register_code();
}

template <class T>
T *at(std::vector<uint8_t> &bytes, uint64_t offset) {
  return reinterpret_cast<T *>(bytes.data() + offset);
}

/// Converts a program file to a 64-bit object file in which sections, symbols and debug information
/// have the addresses of one PE. Program::parse has checked all headers and symbols.
class Converter {
 public:
  Converter(std::span<const uint8_t> file, const PePlace &place)
      : file_(file.begin(), file.end()),
        place_(place),
        header_(*at<Elf32_Ehdr>(file_, 0)),
        sections_(at<Elf32_Shdr>(file_, header_.e_shoff)) {}

  std::vector<uint8_t> object() {
    for (uint16_t i = 0; i < header_.e_shnum; ++i)
      if (sections_[i].sh_type == SHT_RELA) relocate(sections_[i]);
    out_.resize(sizeof(Elf64_Ehdr) + header_.e_shnum * sizeof(Elf64_Shdr));
    for (uint16_t i = 0; i < header_.e_shnum; ++i) {
      Elf64_Shdr section = converted(sections_[i]);
      section.sh_offset = out_.size();
      if (section.sh_type == SHT_SYMTAB) {
        append_symbols(sections_[i]);
      } else if (is_named(sections_[i], ".debug_frame")) {
        append_frames(sections_[i]);
      } else if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL) {
        append(file_.data() + sections_[i].sh_offset, section.sh_size);
      }
      if (section.sh_type != SHT_NOBITS) section.sh_size = out_.size() - section.sh_offset;
      *at<Elf64_Shdr>(out_, sizeof(Elf64_Ehdr) + i * sizeof section) = section;
    }
    auto &header = *at<Elf64_Ehdr>(out_, 0);
    std::memcpy(header.e_ident, header_.e_ident, EI_NIDENT);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_type = ET_EXEC;
    header.e_machine = EM_X86_64;
    header.e_version = EV_CURRENT;
    header.e_shoff = header.e_ehsize = sizeof header;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = header_.e_shnum;
    header.e_shstrndx = header_.e_shstrndx;
    return std::move(out_);
  }

 private:
  /// Returns the distance from an address in the file to the address of the PE. MRAM has none.
  uint32_t shift(uint32_t address) const {
    if (address >= PE_TEXT_ORIGIN) return address_of(place_.text) - PE_TEXT_ORIGIN;
    return address < PE_MRAM_ORIGIN ? address_of(place_.wram) - PE_WRAM_ORIGIN : 0;
  }
  uint32_t shift_of(const Elf32_Sym &symbol) const {
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= header_.e_shnum) return 0;
    const Elf32_Shdr &section = sections_[symbol.st_shndx];
    return (section.sh_flags & SHF_ALLOC) != 0 ? shift(section.sh_addr) : 0;
  }

  /// Changes the addresses in a section of debug information.
  void relocate(const Elf32_Shdr &relocations) {
    if (relocations.sh_info >= header_.e_shnum || relocations.sh_link >= header_.e_shnum) return;
    const Elf32_Shdr &target = sections_[relocations.sh_info],
                     &symbols = sections_[relocations.sh_link];
    if ((target.sh_flags & SHF_ALLOC) != 0 || symbols.sh_type != SHT_SYMTAB) return;
    const auto *entries = at<Elf32_Rela>(file_, relocations.sh_offset);
    for (uint32_t i = 0; i < relocations.sh_size / sizeof *entries; ++i) {
      const uint32_t type = ELF32_R_TYPE(entries[i].r_info),
                     symbol = ELF32_R_SYM(entries[i].r_info);
      if ((type != R_X86_64_32 && type != R_X86_64_64) ||
          symbol >= symbols.sh_size / sizeof(Elf32_Sym))
        continue;
      if (target.sh_size < sizeof(uint32_t) ||
          entries[i].r_offset > target.sh_size - sizeof(uint32_t))
        continue;
      uint8_t *const place = file_.data() + target.sh_offset + entries[i].r_offset;
      uint32_t word;
      std::memcpy(&word, place, sizeof word);
      word += shift_of(at<Elf32_Sym>(file_, symbols.sh_offset)[symbol]);
      std::memcpy(place, &word, sizeof word);
    }
  }

  Elf64_Shdr converted(const Elf32_Shdr &section) const {
    Elf64_Shdr out = {};
    if (section.sh_type == SHT_RELA) return out;
    const bool is_memory = (section.sh_flags & SHF_ALLOC) != 0;
    out.sh_name = section.sh_name;
    out.sh_type = is_memory ? SHT_NOBITS : section.sh_type;
    out.sh_flags = section.sh_flags;
    out.sh_addr = is_memory ? section.sh_addr + shift(section.sh_addr) : 0;
    out.sh_size = section.sh_size;
    out.sh_link = section.sh_link;
    out.sh_info = section.sh_info;
    out.sh_addralign = section.sh_addralign;
    out.sh_entsize = section.sh_type == SHT_SYMTAB ? sizeof(Elf64_Sym) : section.sh_entsize;
    return out;
  }

  void append(const void *bytes, uint64_t count) {
    const auto *first = static_cast<const uint8_t *>(bytes);
    out_.insert(out_.end(), first, first + count);
  }

  void append_symbols(const Elf32_Shdr &section) {
    const auto *symbols = at<Elf32_Sym>(file_, section.sh_offset);
    for (uint32_t i = 0; i < section.sh_size / sizeof *symbols; ++i) {
      const Elf32_Sym &symbol = symbols[i];
      const Elf64_Sym wide = {symbol.st_name,
                              symbol.st_info,
                              symbol.st_other,
                              symbol.st_shndx,
                              symbol.st_value + shift_of(symbol),
                              symbol.st_size};
      append(&wide, sizeof wide);
    }
  }

  bool is_named(const Elf32_Shdr &section, const char *name) const {
    if (header_.e_shstrndx >= header_.e_shnum) return false;
    const Elf32_Shdr &names = sections_[header_.e_shstrndx];
    const size_t bytes = std::strlen(name) + 1;
    return section.sh_name <= names.sh_size && bytes <= names.sh_size - section.sh_name &&
           std::memcmp(file_.data() + names.sh_offset + section.sh_name, name, bytes) == 0;
  }

  /// Appends .debug_frame with headers of version 4, the first version that has the size of an
  /// address. Debuggers take the size from the object file if the header does not have it.
  void append_frames(const Elf32_Shdr &section) {
    constexpr uint32_t kIsHeader = UINT32_MAX, kWords = 8, kVersion = 8, kText = 9;
    const uint8_t *const bytes = file_.data() + section.sh_offset;
    const uint64_t begin = out_.size();
    std::map<uint32_t, uint32_t> headers;  // the new offset of a header, by the old one
    for (uint32_t next = 0, offset = 0; section.sh_size - offset > kText; offset = next) {
      uint32_t words[2];  // bytes after this word; kIsHeader or the offset of the header
      std::memcpy(words, bytes + offset, kWords);
      if (words[0] < kText + 1 - sizeof *words ||
          words[0] > section.sh_size - offset - sizeof *words)
        return;
      next = offset + static_cast<uint32_t>(sizeof *words) + words[0];
      const uint8_t *const entry = bytes + offset;
      const bool grows = words[1] == kIsHeader && entry[kVersion] < 4 && entry[kText] == 0;
      if (words[1] == kIsHeader)
        headers[offset] = static_cast<uint32_t>(out_.size() - begin);
      else
        words[1] = headers[words[1]];
      if (grows) words[0] += 2;
      append(words, kWords);
      if (grows) {
        const uint8_t version_4[] = {4, 0, sizeof(uint32_t), 0};  // 0: no text, no segments
        append(version_4, sizeof version_4);
      }
      const uint32_t copied = grows ? kText + 1 : kWords;
      append(entry + copied, next - offset - copied);
    }
  }

  std::vector<uint8_t> file_, out_;
  PePlace place_;
  Elf32_Ehdr header_;
  const Elf32_Shdr *sections_;
};

}  // namespace

bool is_debugger_attached() {
  std::ifstream status("/proc/self/status");
  constexpr char kTracer[] = "TracerPid:";
  for (std::string word; status >> word;)
    if (word == kTracer) return status >> word && word != "0";
  return false;
}

namespace {

/// Requires `mutex`.
void announce(std::span<const uint8_t> file, const PePlace &place) {
  if (announcements.contains(place.text)) return;
  auto announcement = std::make_unique<Announcement>();
  announcement->object = Converter(file, place).object();
  jit_code_entry &entry = announcement->entry;
  entry = {__jit_debug_descriptor.first_entry, nullptr,
           reinterpret_cast<const char *>(announcement->object.data()),
           announcement->object.size()};
  announcements[place.text] = std::move(announcement);
  if (entry.next_entry != nullptr) entry.next_entry->prev_entry = &entry;
  __jit_debug_descriptor.first_entry = &entry;
  notify(kRegister, &entry);
}

}  // namespace

void announce_code(std::span<const uint8_t> file, const PePlace &place, uint32_t rank,
                   uint32_t dpu_index) {
  const char *const chosen = std::getenv("DPUEMU_DEBUG_PE");
  if (chosen != nullptr && chosen != short_name(rank, dpu_index)) return;
  std::lock_guard<std::mutex> lock(mutex);
  if (announcements.size() < kMostPes) announce(file, place);
}

void withdraw_code(const PePlace &place) {
  std::lock_guard<std::mutex> lock(mutex);
  const auto found = announcements.find(place.text);
  if (found == announcements.end()) return;
  jit_code_entry &entry = found->second->entry;
  (entry.prev_entry != nullptr ? entry.prev_entry->next_entry
                               : __jit_debug_descriptor.first_entry) = entry.next_entry;
  if (entry.next_entry != nullptr) entry.next_entry->prev_entry = entry.prev_entry;
  notify(kUnregister, &entry);
  announcements.erase(found);
}

DebuggedRun::DebuggedRun() {
  std::lock_guard<std::mutex> lock(mutex);
  next = std::exchange(__dpuemu_debug_state.runs, this);
}

DebuggedRun::~DebuggedRun() {
  std::lock_guard<std::mutex> lock(mutex);
  DebuggedRun **link = &__dpuemu_debug_state.runs;
  while (*link != this) link = &(*link)->next;
  *link = next;
}

void show_memory(uint32_t rank, uint32_t dpu_index, const uint8_t *region, const uint8_t *wram) {
  __dpuemu_debug_state.ranks[rank].region = region;
  __dpuemu_debug_state.ranks[rank].wram[dpu_index] = wram;
}

void show_unwritten(uint8_t byte) { __dpuemu_debug_state.unwritten = byte; }

void stop_at_fault(const DebuggedRun &run, const Program &program, const PeFault &fault) {
  if (program.file().empty()) return;  // no debugger
  if (program.code() == nullptr) {
    std::lock_guard<std::mutex> lock(mutex);
    announce(program.file(), run.place);
  }
  const bool is_cause = fault.kind != FaultKind::kDeadlock && fault.kind != FaultKind::kEndless;
  __dpuemu_debug_fault(&run, fault.tasklet, fault.reason.c_str(), is_cause);
}

}  // namespace dpuemu
