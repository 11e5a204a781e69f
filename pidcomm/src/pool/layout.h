// The library's own lines at the start of a pool: one head, then a seat for every process. Each
// line has one writer. Only for the files that define members of Pool.
#pragma once

#include <atomic>
#include <cstdint>
#include <sstream>
#include <string>

#include "base/geometry.h"
#include "pool/pool.h"

namespace pidcomm {

/// A number that one process increases, and the number of processes that sleep until it changes;
/// only policy `none` counts sleepers.
struct Pool::Counter {
  std::atomic<uint32_t> value, sleepers;
};

/// What all processes must agree on.
struct Pool::Facts {
  uint64_t bytes;
  uint32_t hosts, has_switch, coherence, version;
  bool operator==(const Facts &) const = default;
  std::string to_string() const {
    std::ostringstream text;
    text << bytes << " bytes, " << hosts << " hosts, " << (has_switch ? "a" : "no")
         << " switch, coherence " << (coherence == PIDCOMM_COHERENCE_HARDWARE ? "hardware" : "none")
         << ", layout " << version;
    return text.str();
  }
};

/// Host 0 is the writer, except of `done`.
struct Pool::Head {
  alignas(kLineBytes) std::atomic<uint64_t> generation;  // a random number for each pool; 0 while
                                                         // host 0 prepares this struct
  Facts facts;
  alignas(kLineBytes) Counter released;  // syncs at which all hosts have arrived
  alignas(
      kLineBytes) std::atomic<int32_t> refusal;  // the status with which host 0 has given up, or OK
  char sentence[508];                            // why, with a final 0 byte
  alignas(kLineBytes) Counter asked;             // requests to the switch
  pidcomm_reduction reduction;
  alignas(kLineBytes) Counter done;  // by the switch
};

/// Whether a process has closed the pool.
enum Pool::Left : uint32_t { kNot, kClosed, kAfterError };

/// An allgather as all hosts must call it, and its number among the syncs.
struct Pool::Gather {
  uint64_t offset, area_bytes, bytes;
  uint32_t sync;
  bool operator==(const Gather &) const = default;
};

/// The process with this seat is the writer, except of `welcome`.
struct Pool::Seat {
  alignas(kLineBytes) std::atomic<uint64_t> generation;  // of the pool that the process has joined
  uint64_t nonce;                                        // a random number for each process
  Facts facts;
  int32_t process;
  alignas(kLineBytes) Counter arrived;   // syncs
  uint64_t allocated;                    // 0 in an allgather
  std::atomic<uint32_t> left;            // a Left
  alignas(kLineBytes) Gather gather[2];  // of even and of odd syncs
  alignas(kLineBytes)
      std::atomic<uint64_t> welcome;  // by host 0: the nonce of the process that takes part
};

template <class Visit>
void Pool::each_seat(const Visit &visit) const {
  for (uint32_t host = 0; host < hosts(); ++host) visit(seat_of(host));
  if (has_switch()) visit(kSwitchSeat);
}

}  // namespace pidcomm
