#include "check/compile.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "check/settings.h"
#include "machine/program_file.h"

namespace dpuemu {
namespace {

constexpr char kCompiler[] = "dpu-upmem-dpurte-clang";

/// Compiles `from` to `to`. Returns whether this succeeded; else the compiler has said why.
bool compile(const std::string &from, const std::string &to) {
  std::string words[] = {kCompiler, "--compile-for-checks", from, to};
  char *const pointers[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                            nullptr};
  pid_t process;
  int status;
  if (posix_spawnp(&process, kCompiler, nullptr, nullptr, pointers, environ) != 0) return false;
  return waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

const Program *compiled_again(std::span<const char> file, const char *name) {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "dpuemu-check-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return nullptr;
  const std::string from = folder + "/program", to = folder + "/checked";
  std::ofstream(from, std::ios::binary)
      .write(file.data(), static_cast<std::streamsize>(file.size()));
  std::vector<char> bytes;
  const Program *program = nullptr;
  if (compile(from, to) && read_program_file(to, bytes) == DPU_OK &&
      find_or_parse_program({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()}, name,
                            program) != DPU_OK)
    program = nullptr;
  std::error_code error;
  fs::remove_all(folder, error);
  return program;
}

}  // namespace

const Program *program_for_checks(const Program &program, std::span<const char> file,
                                  const char *name) {
  if (check_settings().is_on == program.is_checked()) return &program;
  static std::mutex mutex;
  static auto *const programs = new std::unordered_map<const Program *, const Program *>;
  std::lock_guard<std::mutex> lock(mutex);
  const auto [entry, is_new] = programs->try_emplace(&program, &program);
  if (!is_new) return entry->second;
  if (program.code() != nullptr) {
    std::fprintf(stderr,
                 "dpuemu check: %s is machine code for DPUs, which is not checked; compile its "
                 "source with dpuemu's dpu-upmem-dpurte-clang\n",
                 name);
    return &program;
  }
  if (program.is_checked()) {
    std::fprintf(
        stderr,
        "dpuemu: %s was compiled in `dpuemu check`, so its modelled times are wrong; compile "
        "it again\n",
        name);
    return &program;
  }
  if (const Program *const again = compiled_again(file, name); again != nullptr)
    return entry->second = again;
  std::fprintf(stderr,
               "dpuemu check: %s was compiled without checks, so only its DMA and waiting are "
               "checked; compile it in `dpuemu check`, for example by `dpuemu check -- make -B`\n",
               name);
  return &program;
}

}  // namespace dpuemu
