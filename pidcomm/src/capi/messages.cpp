// The functions of messages.h.
#include "pidcomm/messages.h"

#include <vector>

#include "base/error.h"
#include "capi/guarded.h"
#include "capi/hypercube.h"
#include "pidcomm/request.hpp"

namespace {

using namespace pidcomm;

/// Stores messages in the caller's array, as far as it has place.
class MessageList {
 public:
  MessageList(pidcomm_pe_message *messages, size_t capacity, size_t *count)
      : messages_(messages), capacity_(capacity), count_(count) {
    require(count, "count");
    *count = 0;
    if (capacity != 0) require(messages, "messages");
  }
  void add(uint32_t from_pe, uint32_t to_pe, uint64_t from, uint64_t to, uint64_t bytes) {
    if (bytes % PIDCOMM_WORD_BYTES != 0)
      fail(PIDCOMM_ERR_SIZE, "PE ", from_pe, " sends ", bytes, " bytes to PE ", to_pe,
           "; the bytes of a message must be a multiple of ", PIDCOMM_WORD_BYTES);
    if (from + bytes > UINT32_MAX || to + bytes > UINT32_MAX)
      fail(PIDCOMM_ERR_SIZE, "the windows of PEs ", from_pe, " and ", to_pe, " have 4 GiB or more");
    if (*count_ < capacity_)
      messages_[*count_] = {from_pe,
                            to_pe,
                            static_cast<uint32_t>(from),
                            static_cast<uint32_t>(to),
                            static_cast<uint32_t>(bytes),
                            1,
                            0,
                            0};
    ++*count_;
  }
  void check() const {
    if (*count_ > capacity_)
      fail(PIDCOMM_ERR_SIZE, "capacity is ", capacity_, "; there are ", *count_, " messages");
  }

 private:
  pidcomm_pe_message *messages_;
  const size_t capacity_;
  size_t *count_;
};

const Hypercube &cube_of(const pidcomm_hypercube *cube) {
  require(cube, "cube");
  return cube->executor.cube();
}

/// Returns the table of a group: tables is 1, or the number of groups.
const uint32_t *table_of(const Grouping &grouping, const uint32_t *counts, uint32_t tables,
                         uint32_t group, uint64_t table_size) {
  require(counts, "counts");
  if (tables != 1 && tables != grouping.groups)
    fail(PIDCOMM_ERR_ARGUMENT, "tables is ", tables, "; it must be 1 or the number of groups (",
         grouping.groups, ")");
  return counts + (tables == 1 ? 0 : group * table_size);
}

}  // namespace

int pidcomm_sendrecv(pidcomm_hypercube *cube, const pidcomm_pe_message *messages, size_t count,
                     size_t src, size_t dst) {
  if (count > SIZE_MAX / sizeof *messages)
    return guarded(
        [&] { fail(PIDCOMM_ERR_SIZE, "sendrecv: ", count, " messages do not fit in memory"); });
  const pidcomm_request request = request::sendrecv(messages, count, src, dst);
  return pidcomm_run(cube, &request, nullptr, nullptr);
}

int pidcomm_permute_messages(const pidcomm_hypercube *cube, const char *mask,
                             const uint32_t *sources, uint32_t bytes, pidcomm_pe_message *messages,
                             size_t capacity, size_t *count) {
  return guarded([&] {
    MessageList list(messages, capacity, count);
    const Grouping grouping = Grouping::of(cube_of(cube), mask);
    require(sources, "sources");
    for (uint32_t member = 0; member < grouping.group_pes; ++member) {
      const uint32_t source = sources[member];
      if (source == PIDCOMM_NO_MEMBER) continue;
      if (source >= grouping.group_pes)
        fail(PIDCOMM_ERR_ARGUMENT, "sources[", member, "] is ", source, "; a group under mask ",
             mask, " has ", grouping.group_pes, " members");
      for (uint32_t group = 0; group < grouping.groups; ++group)
        list.add(grouping.pe_at(group, source), grouping.pe_at(group, member), 0, 0, bytes);
    }
    list.check();
  });
}

int pidcomm_alltoallv_messages(const pidcomm_hypercube *cube, const char *mask,
                               const uint32_t *counts, uint32_t tables,
                               pidcomm_pe_message *messages, size_t capacity, size_t *count) {
  return guarded([&] {
    MessageList list(messages, capacity, count);
    const Grouping grouping = Grouping::of(cube_of(cube), mask);
    const uint64_t members = grouping.group_pes;
    for (uint32_t group = 0; group < grouping.groups; ++group) {
      const uint32_t *const table = table_of(grouping, counts, tables, group, members * members);
      std::vector<uint64_t> received(members);  // bytes of earlier members
      for (uint32_t from = 0; from < members; ++from) {
        uint64_t sent = 0;
        for (uint32_t to = 0; to < members; ++to) {
          const uint32_t bytes = table[from * members + to];
          list.add(grouping.pe_at(group, from), grouping.pe_at(group, to), sent, received[to],
                   bytes);
          sent += bytes;
          received[to] += bytes;
        }
      }
    }
    list.check();
  });
}

int pidcomm_allgatherv_messages(const pidcomm_hypercube *cube, const char *mask,
                                const uint32_t *counts, uint32_t tables,
                                pidcomm_pe_message *messages, size_t capacity, size_t *count) {
  return guarded([&] {
    MessageList list(messages, capacity, count);
    const Grouping grouping = Grouping::of(cube_of(cube), mask);
    for (uint32_t group = 0; group < grouping.groups; ++group) {
      const uint32_t *const table = table_of(grouping, counts, tables, group, grouping.group_pes);
      uint64_t earlier = 0;  // bytes of earlier members
      for (uint32_t from = 0; from < grouping.group_pes; ++from) {
        for (uint32_t to = 0; to < grouping.group_pes; ++to)
          list.add(grouping.pe_at(group, from), grouping.pe_at(group, to), 0, earlier, table[from]);
        earlier += table[from];
      }
    }
    list.check();
  });
}
