#include "doctor/pe_program.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "doctor/report.h"

namespace doctor {

namespace {

constexpr const char *kCompiler = "dpu-upmem-dpurte-clang";
constexpr const char *kSource = R"(#include <defs.h>
#include <mram.h>
#include <stdint.h>

__dma_aligned uint64_t words[WORDS];

int main(void) {
  __mram_ptr void *heap = DPU_MRAM_HEAP_POINTER;
  if (me() != 0) return 0;
  mram_read(heap, words, sizeof words);
  for (int i = 0; i < WORDS; ++i) ++words[i];
  mram_write(words, heap, sizeof words);
  return 0;
}
)";

}  // namespace

PeProgram::PeProgram(bool is_emulated) {
  if (std::system(joined("command -v ", kCompiler, " >/dev/null 2>&1").c_str()) != 0) {
    const std::string missing = joined("there is no ", kCompiler, " in PATH to compile a PE program");
    if (is_emulated) throw Skipped(missing);
    throw Failed(missing + ": source the SDK's upmem_env.sh");
  }
  std::string folder = (std::filesystem::temp_directory_path() / "pidcomm-doctor-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    throw Failed(joined("cannot create a folder in ", std::filesystem::temp_directory_path().string()));
  folder_ = folder;
  path_ = folder_ + "/increment";
  std::ofstream(path_ + ".c") << kSource;
  const std::string command =
      joined(kCompiler, " -O2 -DNR_TASKLETS=1 -DWORDS=", kWords, " -o '", path_, "' '", path_, ".c' >'", folder_, "/messages' 2>&1");
  if (std::system(command.c_str()) == 0) return;
  std::string messages;
  std::getline(std::ifstream(folder_ + "/messages"), messages);
  remove();
  throw Failed(joined(kCompiler, " fails to compile the PE program: ", messages));
}

PeProgram::~PeProgram() { remove(); }

void PeProgram::remove() const {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace doctor
