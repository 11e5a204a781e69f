#include "machine/program_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/explanation.h"

namespace dpuemu {
namespace {

constexpr off_t kMostBytes = off_t{256} << 20;  // all of MRAM and debug information

class OpenFile {
 public:
  /// O_NONBLOCK: the call does not wait for the writer of a pipe.
  explicit OpenFile(const std::string &path)
      : number_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}
  ~OpenFile() {
    if (number_ >= 0) close(number_);
  }
  OpenFile(const OpenFile &) = delete;
  OpenFile &operator=(const OpenFile &) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

dpu_error_t refuse(const std::string &path, const std::string &problem) {
  return explained(DPU_ERR_ELF_INVALID_FILE, path + ": " + problem);
}

}  // namespace

dpu_error_t read_program_file(const std::string &path, std::vector<char> &bytes) {
  const OpenFile file(path);
  if (file.number() < 0)
    return explained(DPU_ERR_ELF_NO_SUCH_FILE,
                     errno == ENOENT ? path : path + ": " + std::strerror(errno));
  struct stat status;
  if (fstat(file.number(), &status) != 0) return refuse(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return refuse(path, "not a regular file");
  if (status.st_size > kMostBytes)
    return refuse(path, std::to_string(status.st_size) + " bytes; a program has at most " +
                            std::to_string(kMostBytes));
  bytes.resize(static_cast<size_t>(status.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = read(file.number(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse(path, std::strerror(errno));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return DPU_OK;
}

}  // namespace dpuemu
