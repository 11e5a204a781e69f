// The memory of a pool: a shared memory object, a file, a device, or memory of the caller. Knows
// names, sizes and access rights, and which of the processes that share the memory are alive. Knows
// nothing about the contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "pidcomm/pool.h"

namespace pidcomm {

/// A seat is the number of a process that shares the memory: the switch, host 0, which creates the
/// memory, host 1 and so on.
inline constexpr uint32_t kSwitchSeat = 0, kCreatorSeat = 1;
std::string name_of_seat(uint32_t seat);

/// A process that takes a seat locks one byte of the object or file. The system releases the lock
/// when the process ends in any way.
class PoolMemory {
 public:
  /// Creates or opens the memory of `settings`. creates: true for host 0, which creates a named
  /// object that others cannot find yet, and removes named objects of processes that have ended.
  /// Returns memory without bytes if the object or file does not exist yet. Errors: ERR_ARGUMENT,
  /// ERR_MEMORY, ERR_DEVICE; see pidcomm_pool_open.
  PoolMemory(const pidcomm_pool_settings &settings, bool creates);
  ~PoolMemory();
  PoolMemory(const PoolMemory &) = delete;
  PoolMemory &operator=(const PoolMemory &) = delete;

  std::byte *data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  /// The name of the pool for sentences.
  const std::string &title() const { return title_; }

  /// Takes a seat. Errors: ERR_ARGUMENT (another process has it).
  void take_seat(uint32_t seat);
  /// Whether is_taken knows which processes are alive.
  bool sees_seats() const { return sees_seats_; }
  /// Whether another process has a seat.
  bool is_taken(uint32_t seat) const;

  /// Gives a named object its name, so that others find it. Errors: ERR_ARGUMENT (another pool has
  /// the name).
  void publish();
  /// Removes the name of a named object; does nothing if that has been done.
  void unpublish() const;

 private:
  void create_object(uint64_t bytes);
  void open_object();
  void open_file(const char *path, uint64_t bytes, bool creates);
  void map(uint64_t bytes);
  void reserve(uint64_t bytes) const;
  [[noreturn]] void fail_system(const char *what) const;
  void close() const;

  std::string title_;
  std::string prefix_, object_;  // of a named object: the start of its name, and its name
  int fd_ = -1;
  bool is_named_ = false, sees_seats_ = false;
  std::byte *data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace pidcomm
