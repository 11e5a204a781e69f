#include "pool/memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "base/error.h"

namespace pidcomm {

namespace {

constexpr char kFolder[] = "/dev/shm";  // where shm_open has its objects
constexpr mode_t kRights = 0600;
constexpr std::size_t kLongestName = 64;

std::string prefix_of_user() { return "pidcomm-pool-" + std::to_string(geteuid()) + "-"; }

/// The lock of a seat belongs to the open file, so hosts may also be threads of one process.
struct flock lock_of(uint32_t first, uint32_t count) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = first;
  lock.l_len = count;  // 0: all bytes
  return lock;
}
bool is_locked(int fd, uint32_t first, uint32_t count) {
  struct flock lock = lock_of(first, count);
  return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/// Returns the named objects of this user whose names begin with `prefix`.
std::vector<std::string> objects_with(const std::string &prefix) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR *)> folder(opendir(kFolder), closedir);
  while (const dirent *const entry = folder == nullptr ? nullptr : readdir(folder.get()))
    if (std::strncmp(entry->d_name, prefix.c_str(), prefix.size()) == 0)
      names.emplace_back(entry->d_name);
  return names;
}

/// Opens an object and returns its file, or -1 if it is gone or belongs to another user.
int open_own(const std::string &object) {
  const int fd = shm_open(("/" + object).c_str(), O_RDWR | O_CLOEXEC, 0);
  struct stat found;
  if (fd < 0) return -1;
  if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == geteuid()) return fd;
  ::close(fd);
  return -1;
}

bool is_own(const std::string &object) {
  const int fd = open_own(object);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

/// Whether the object belongs to the pool: behind the prefix come only the numbers of a process and
/// of a sequence.
bool is_of_pool(const std::string &object, const std::string &prefix) {
  const std::string rest = object.substr(prefix.size());
  const std::size_t dash = rest.find('-');
  const auto is_number = [](const std::string &text) {
    return !text.empty() && std::all_of(text.begin(), text.end(),
                                        [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  return dash != std::string::npos && is_number(rest.substr(0, dash)) &&
         is_number(rest.substr(dash + 1));
}

/// Removes the objects of processes that have ended.
void remove_abandoned() {
  for (const std::string &object : objects_with(prefix_of_user())) {
    const int fd = open_own(object);
    if (fd < 0) continue;
    if (!is_locked(fd, 0, 0)) shm_unlink(("/" + object).c_str());
    ::close(fd);
  }
}

}  // namespace

std::string name_of_seat(uint32_t seat) {
  return seat == kSwitchSeat ? "the switch" : "host " + std::to_string(seat - kCreatorSeat);
}

PoolMemory::PoolMemory(const pidcomm_pool_settings &settings, bool creates) {
  const bool is_coherent = settings.coherence != PIDCOMM_COHERENCE_HARDWARE;
  try {
    if (settings.memory != nullptr) {
      title_ = "the pool in the caller's memory";
      data_ = static_cast<std::byte *>(settings.memory);
      bytes_ = settings.bytes;
      return;
    }
    if (settings.path != nullptr) {
      title_ = "the pool " + std::string(settings.path);
      open_file(settings.path, settings.bytes, creates);
    } else {
      const std::string name = settings.name;
      if (name.empty() || name.size() > kLongestName ||
          !std::all_of(name.begin(), name.end(), [](unsigned char c) {
            return std::isalnum(c) || std::strchr("-_.", c) != nullptr;
          }))
        fail(PIDCOMM_ERR_ARGUMENT, "the name '", name, "' of a pool must have 1 to ", kLongestName,
             " letters, digits, '-', '_' and '.'");
      title_ = "the pool '" + name + "'";
      prefix_ = prefix_of_user() + name + "-";
      is_named_ = true;
      creates ? create_object(settings.bytes) : open_object();
    }
  } catch (...) {
    close();
    throw;
  }
  struct stat found{};
  sees_seats_ =
      is_named_ || (fd_ >= 0 && is_coherent && fstat(fd_, &found) == 0 && S_ISREG(found.st_mode));
}

PoolMemory::~PoolMemory() { close(); }

void PoolMemory::close() const {
  if (fd_ < 0) return;  // memory of the caller, or none
  if (data_ != nullptr) munmap(data_, bytes_);
  ::close(fd_);
}

void PoolMemory::fail_system(const char *what) const {
  const int error = errno;
  fail(error == EEXIST || error == ENOENT ? PIDCOMM_ERR_ARGUMENT : PIDCOMM_ERR_DEVICE, title_,
       ": the system cannot ", what, ": ", std::strerror(error));
}

void PoolMemory::map(uint64_t bytes) {
  void *const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) fail_system("map it");
  data_ = static_cast<std::byte *>(memory);
  bytes_ = bytes;
}

/// The object gets its name when its contents are ready, so a process that is killed before leaves
/// nothing.
void PoolMemory::create_object(uint64_t bytes) {
  remove_abandoned();
  fd_ = open(kFolder, O_TMPFILE | O_RDWR | O_CLOEXEC, kRights);
  if (fd_ < 0) fail_system("create a shared memory object");
  reserve(bytes);
  map(bytes);
}

/// Reserves memory for all bytes, so that no later store raises SIGBUS.
void PoolMemory::reserve(uint64_t bytes) const {
  const int error = posix_fallocate(fd_, 0, static_cast<off_t>(bytes));
  if (error == ENOSPC || error == ENOMEM) {
    struct statvfs space{};
    fstatvfs(fd_, &space);
    fail(PIDCOMM_ERR_MEMORY, title_, " needs ", bytes, " bytes, but its file system has ",
         space.f_bavail * space.f_frsize, " free bytes");
  }
  errno = error;
  if (error != 0) fail_system("reserve its memory");
}

void PoolMemory::open_object() {
  for (const std::string &object : objects_with(prefix_)) {
    if (!is_of_pool(object, prefix_)) continue;
    fd_ = open_own(object);
    struct stat found{};
    if (fd_ >= 0 && is_locked(fd_, kCreatorSeat, 1) && fstat(fd_, &found) == 0) {
      object_ = object;
      return map(static_cast<uint64_t>(found.st_size));
    }
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
}

void PoolMemory::open_file(const char *path, uint64_t bytes, bool creates) {
  fd_ = open(path, O_RDWR | O_CLOEXEC | (creates ? O_CREAT : 0), kRights);
  const int error = errno;
  struct stat found{};
  if (fd_ < 0 && error == ENOENT && !creates) return;  // host 0 has not created it yet
  const bool is_there = (fd_ < 0 ? stat(path, &found) : fstat(fd_, &found)) == 0;
  if (is_there && S_ISREG(found.st_mode) && found.st_uid != geteuid())
    fail(PIDCOMM_ERR_ARGUMENT, title_, " is a file of the user ", found.st_uid,
         "; this process has the user ", geteuid(), ", and a pool needs a file of the same user");
  errno = error;
  if (fd_ < 0 || !is_there) fail_system("open it");
  auto size = static_cast<uint64_t>(found.st_size);
  if (S_ISCHR(found.st_mode) || S_ISBLK(found.st_mode)) {
    std::ifstream file("/sys/dev/char/" + std::to_string(major(found.st_rdev)) + ":" +
                       std::to_string(minor(found.st_rdev)) + "/size");
    size = bytes;  // if the system does not report the size, mmap checks it
    file >> size;
    if (size < bytes)
      fail(PIDCOMM_ERR_ARGUMENT, title_, " is a device of ", size, " bytes; the pool needs ",
           bytes);
    return map(bytes);
  }
  if (!S_ISREG(found.st_mode))
    fail(PIDCOMM_ERR_ARGUMENT, title_, " is neither a file nor a device");
  if (size == 0 && creates) {
    reserve(bytes);
    size = bytes;
  }
  if (size == 0) {  // host 0 has not filled it yet
    ::close(fd_);
    fd_ = -1;
    return;
  }
  if (size != bytes)
    fail(PIDCOMM_ERR_ARGUMENT, title_, " is a file of ", size, " bytes, not ", bytes,
         "; give its size, or remove it so that host 0 creates it");
  map(bytes);
}

void PoolMemory::take_seat(uint32_t seat) {
  if (fd_ < 0 || !sees_seats_) return;
  struct flock lock = lock_of(seat, 1);
  if (fcntl(fd_, F_OFD_SETLK, &lock) == 0) return;
  if (errno != EAGAIN && errno != EACCES) fail_system("lock it");
  fail(PIDCOMM_ERR_ARGUMENT, title_, " is already open as ", name_of_seat(seat),
       " in another process; hosts of a pool need different numbers, and pools different names");
}

bool PoolMemory::is_taken(uint32_t seat) const { return is_locked(fd_, seat, 1); }

void PoolMemory::publish() {
  if (!is_named_) return;
  static std::atomic<uint32_t> sequence{0};
  const std::string from = "/proc/self/fd/" + std::to_string(fd_);
  const auto has_linked = [&] {
    object_ = prefix_ + std::to_string(getpid()) + "-" + std::to_string(++sequence);
    const std::string to = std::string(kFolder) + "/" + object_;
    return linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  while (!has_linked())
    if (errno != EEXIST) fail_system("name its shared memory object");
  for (const std::string &other : objects_with(prefix_))
    if (other != object_ && is_of_pool(other, prefix_) && is_own(other)) {
      unpublish();
      fail(PIDCOMM_ERR_ARGUMENT, title_, ": hosts are opening another pool of this name (", kFolder,
           "/", other, "); every pool needs a different name");
    }
}

void PoolMemory::unpublish() const {
  if (is_named_ && !object_.empty()) shm_unlink(("/" + object_).c_str());
}

}  // namespace pidcomm
