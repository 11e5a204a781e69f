#include "doctor/pe_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

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

/// Starts a program of PATH without a shell and waits for it; its output goes to the file `output`.
/// Returns 0, or the errno of a failed start. Stores what waitpid returns in `status`.
int run(std::vector<std::string> words, const std::string &output, int &status) {
  std::vector<char *> argv;
  for (std::string &word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  if (const int error = posix_spawn_file_actions_init(&actions); error != 0) return error;
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return error;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return errno;
  return 0;
}

}  // namespace

PeProgram::PeProgram(bool is_emulated) {
  // If this process is killed, a later `pidcomm` removes the folder, because the name fits and
  // nobody holds the lock (temporary.py).
  std::string folder = (std::filesystem::temp_directory_path() / "pidcomm-tmp-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    throw Failed(
        joined("cannot create a folder in ", std::filesystem::temp_directory_path().string()));
  folder_ = folder;
  lock_ = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  flock(lock_, LOCK_EX);
  path_ = folder_ + "/increment";
  std::ofstream(path_ + ".c") << kSource;
  const std::string output = folder_ + "/messages";
  int status = 0;
  const int error = run(
      {kCompiler, "-O2", "-DNR_TASKLETS=1", joined("-DWORDS=", kWords), "-o", path_, path_ + ".c"},
      output, status);
  if (error == 0 && status == 0) return;
  std::string messages;
  std::getline(std::ifstream(output), messages);
  remove();
  if (error == ENOENT) {
    const std::string missing =
        joined("there is no ", kCompiler, " in PATH to compile a PE program");
    if (is_emulated) throw Skipped(missing);
    throw Failed(missing + ": source the SDK's upmem_env.sh");
  }
  if (error != 0) throw Failed(joined("cannot start ", kCompiler, ": ", std::strerror(error)));
  throw Failed(joined(kCompiler, " fails to compile the PE program: ", messages));
}

PeProgram::~PeProgram() { remove(); }

void PeProgram::remove() const {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
  if (lock_ >= 0) close(lock_);
}

}  // namespace doctor
