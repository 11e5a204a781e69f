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
#include "profile/profile.h"

namespace dpuemu {
namespace {

constexpr char kCompiler[] = "dpu-upmem-dpurte-clang";

/// Compiles `from` to `to`. Returns whether this succeeded; else the compiler has said why.
bool compile(const std::string &from, const std::string &to) {
  std::string words[] = {kCompiler, "--compile-again", from, to};
  char *const pointers[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                            nullptr};
  pid_t process;
  int status;
  if (posix_spawnp(&process, kCompiler, nullptr, nullptr, pointers, environ) != 0) return false;
  return waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

const Program *compiled_again(std::span<const char> file, const char *name) {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "dpuemu-again-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return nullptr;
  const std::string from = folder + "/program", to = folder + "/again";
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

const Program *program_for_settings(const Program &program, std::span<const char> file,
                                    const char *name) {
  const bool is_checked = check_settings().is_on;
  const bool has_counters = is_checked || !profile_is_on() || program.counter_bytes() != 0;
  if (is_checked == program.is_checked() && has_counters) return &program;
  static std::mutex mutex;
  static auto *const programs = new std::unordered_map<const Program *, const Program *>;
  std::lock_guard<std::mutex> lock(mutex);
  const auto [entry, is_new] = programs->try_emplace(&program, &program);
  if (!is_new) return entry->second;
  const char *const tool = is_checked ? "check" : "profile";
  if (program.is_checked() && !is_checked) {
    std::fprintf(
        stderr,
        "dpuemu: %s was compiled in `dpuemu check`, so its modelled times are wrong; compile "
        "it again\n",
        name);
    return &program;
  }
  if (program.code() != nullptr) {
    std::fprintf(stderr,
                 "dpuemu %s: %s is machine code for DPUs, which has no %s; compile its source with "
                 "dpuemu's dpu-upmem-dpurte-clang\n",
                 tool, name, is_checked ? "checks" : "profile");
    return &program;
  }
  if (const Program *const again = compiled_again(file, name); again != nullptr)
    return entry->second = again;
  std::fprintf(stderr,
               "dpuemu %s: %s was compiled without %s; compile it in `dpuemu %s`, for example by "
               "`dpuemu %s -- make -B`\n",
               tool, name,
               is_checked ? "checks, so only its DMA and waiting are checked"
                          : "counters, so the profile does not have its instructions",
               tool, tool);
  return &program;
}

}  // namespace dpuemu
