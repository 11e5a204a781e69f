// The C API of buffers.
#include "pidcomm/buffer.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/sized.h"
#include "capi/guarded.h"
#include "capi/hypercube.h"
#include "exec/mram_blocks.h"
#include "plan/plan.h"
#include "plan/request.h"

namespace pidcomm {
namespace {

/// Buffers of variables have no block, because the program owns their MRAM.
struct View {
  std::shared_ptr<const MramBlock> block;
  std::shared_ptr<const std::vector<struct dpu_rank_t *>> ranks;
  std::string name;
  uint64_t begin;  // MRAM byte
  uint64_t count;  // elements
  uint64_t end;    // MRAM byte behind the buffer or its padding
  ElementType type;

  uint64_t bytes() const { return count * type.size_bytes; }
  uint64_t window() const { return PIDCOMM_MRAM_WINDOW | begin; }
};

uint64_t whole_words(uint64_t bytes) { return (bytes + kWordBytes - 1) / kWordBytes * kWordBytes; }

}  // namespace
}  // namespace pidcomm

struct pidcomm_buffer {
  pidcomm::View view;
};

namespace {

using namespace pidcomm;

std::shared_ptr<const std::vector<struct dpu_rank_t *>> ranks_of(const pidcomm_hypercube *cube) {
  return std::make_shared<const std::vector<struct dpu_rank_t *>>(cube->executor.placement().ranks);
}

/// Returns the bytes of whole words that a call on a buffer moves per PE.
uint64_t require_words(const View &view) {
  const uint64_t end = view.begin + whole_words(view.bytes());
  if (view.begin % kWordBytes != 0 || (end > view.end && view.bytes() % kWordBytes != 0))
    fail(PIDCOMM_ERR_WINDOW, "the slice of buffer ", view.name, " from MRAM byte ", view.begin,
         " with ", view.bytes(), " bytes shares a word of ", kWordBytes,
         " bytes with other elements");
  return end - view.begin;
}

/// Returns the view of a buffer. Errors: ERR_ARGUMENT (the buffer is null or has other PEs),
/// ERR_WINDOW (a program has overwritten the buffer).
const View &view_of(pidcomm_hypercube *cube, const pidcomm_buffer *buffer, const char *name) {
  require(buffer, name);
  const View &view = buffer->view;
  const auto &ranks = cube->executor.placement().ranks;
  if (*view.ranks != ranks && !std::all_of(ranks.begin(), ranks.end(), [&](const auto *rank) {
        return std::find(view.ranks->begin(), view.ranks->end(), rank) != view.ranks->end();
      }))
    fail(PIDCOMM_ERR_ARGUMENT, "buffer ", view.name, " is not on all ranks of the hypercube ",
         cube->executor.cube().to_string(), ": it is on those of another set");
  if (view.block != nullptr) view.block->require_kept(cube->executor.heap_base_now());
  return view;
}

/// Checks the caller's memory for the rows of a buffer, which have no padding.
void require_rows(const View &view, uint64_t pes, const void *host, size_t host_bytes) {
  require(host, "host");
  if (host_bytes != pes * view.bytes())
    fail(PIDCOMM_ERR_HOST_BUFFER, "host_bytes is ", host_bytes, "; buffer ", view.name, " has ",
         pes, " rows of ", view.count, " elements, ", pes * view.bytes(), " bytes");
}

/// Runs a call of pidcomm.h, and turns its status into an exception.
void check(int status) {
  if (status != PIDCOMM_OK) throw Error(static_cast<pidcomm_status>(status), pidcomm_last_error());
}

/// Checks the input or output of a collective, and returns the number of elements of a block.
uint64_t block_elements(const Extent &extent, const Grouping &grouping, const View &view,
                        const char *collective) {
  const uint64_t blocks = extent.per_member ? grouping.group_pes : 1;
  if (view.count % blocks != 0)
    fail(PIDCOMM_ERR_SIZE, collective, ": buffer ", view.name, " has ", view.count,
         " elements, which cannot be divided among the ", blocks, " members of a group");
  return view.count / blocks;
}

/// Returns the buffer of one side, or null if the side is in host rows.
const View *side_of(pidcomm_hypercube *cube, const Extent &extent, const pidcomm_buffer *buffer,
                    const char *side, const char *collective) {
  if (extent.space == Space::mram) return &view_of(cube, buffer, side);
  if (buffer != nullptr)
    fail(PIDCOMM_ERR_ARGUMENT, collective, ": ", side, " must be null, because the ", side,
         "put of this collective is in host rows");
  return nullptr;
}

pidcomm_request request_of(pidcomm_hypercube *cube, int collective, const char *mask,
                           const pidcomm_buffer *in, const pidcomm_buffer *out, int op) {
  require(cube, "cube");
  const CollectiveRule &rule = rule_of(collective);
  const char *const name = name_of_collective(collective);
  const Grouping grouping = Grouping::of(cube->executor.cube(), mask);
  const View *const source = side_of(cube, rule.in, in, "in", name);
  const View *const destination = side_of(cube, rule.out, out, "out", name);
  const View &any = source != nullptr ? *source : *destination;
  if (source != nullptr && destination != nullptr) {
    if (source->type.code != destination->type.code)
      fail(PIDCOMM_ERR_TYPE, name, ": buffer ", source->name, " has elements of type ",
           name_of_type(source->type.code), ", and buffer ", destination->name, " of type ",
           name_of_type(destination->type.code));
    const uint64_t from = block_elements(rule.in, grouping, *source, name),
                   to = block_elements(rule.out, grouping, *destination, name);
    if (from != to)
      fail(PIDCOMM_ERR_SIZE, name, ": buffer ", source->name, " of ", source->count,
           " elements has blocks of ", from, " elements, and buffer ", destination->name, " of ",
           destination->count, " has blocks of ", to, ", in groups of ", grouping.group_pes,
           " PEs");
  }
  pidcomm_request request{};
  request.collective = collective;
  request.mask = mask;
  request.type = any.type.code;
  request.op = rule.reduces ? op : 0;
  const bool has_blocks = rule.in.per_member || rule.out.per_member;
  const Extent &extent = source != nullptr ? rule.in : rule.out;
  const uint64_t elements = block_elements(extent, grouping, any, name);
  // Words with padding may move only if no block follows them.
  request.bytes = has_blocks ? elements * any.type.size_bytes *
                                   (rule.bytes_are_blocks() ? grouping.group_pes : 1)
                             : require_words(any);
  if (source != nullptr) request.src = source->window();
  if (destination != nullptr) request.dst = destination->window();
  if (!has_blocks && destination != nullptr) require_words(*destination);
  return request;
}

/// Moves the rows of a buffer with pidcomm_write or pidcomm_read. Rows in the caller's memory have
/// no padding; if the buffer has it, a copy of the rows moves.
void move_rows(pidcomm_hypercube *cube, const pidcomm_buffer *buffer, std::byte *rows,
               size_t host_bytes, bool writes) {
  require(cube, "cube");
  const View &view = view_of(cube, buffer, "buffer");
  const uint64_t pes = pidcomm_pes(cube);
  require_rows(view, pes, rows, host_bytes);
  const uint64_t bytes = view.bytes(), padded = require_words(view);
  const auto move = [&](std::byte *padded_rows) {
    check(writes ? pidcomm_write(cube, view.window(), padded, padded_rows)
                 : pidcomm_read(cube, view.window(), padded, padded_rows));
  };
  if (bytes == padded) return move(rows);
  std::vector<std::byte> copy(pes * padded);
  for (uint64_t pe = 0; writes && pe < pes; ++pe)
    std::memcpy(copy.data() + pe * padded, rows + pe * bytes, bytes);
  move(copy.data());
  for (uint64_t pe = 0; !writes && pe < pes; ++pe)
    std::memcpy(rows + pe * bytes, copy.data() + pe * padded, bytes);
}

/// Stores in *buffer the view that view_of_type(element type) returns.
template <class ViewOfType>
int create(const pidcomm_hypercube *cube, const char *name, int type, pidcomm_buffer **buffer,
           const ViewOfType &view_of_type) {
  return guarded([&] {
    require(buffer, "buffer");
    *buffer = nullptr;
    require(cube, "cube");
    require(name, "name");
    *buffer = new pidcomm_buffer{view_of_type(ElementType::of(type))};
  });
}

}  // namespace

int pidcomm_buffer_create(pidcomm_hypercube *cube, const char *name, size_t count, int type,
                          pidcomm_buffer **buffer) {
  return create(cube, name, type, buffer, [&](const ElementType &element) {
    if (count == 0) fail(PIDCOMM_ERR_ARGUMENT, "buffer ", name, " has 0 elements; give at least 1");
    const uint64_t bytes = count <= UINT64_MAX / element.size_bytes
                               ? uint64_t{count} * element.size_bytes
                               : UINT64_MAX;
    auto block = std::make_shared<const MramBlock>(cube->executor.placement().ranks, name, bytes,
                                                   cube->executor.heap_base_now());
    const uint64_t begin = block->begin(), end = block->end();
    return View{std::move(block), ranks_of(cube), name, begin, count, end, element};
  });
}

int pidcomm_buffer_of_variable(pidcomm_hypercube *cube, const char *name, int type,
                               pidcomm_buffer **buffer) {
  return create(cube, name, type, buffer, [&](const ElementType &element) {
    const struct dpu_symbol_t symbol = cube->executor.mram_variable(name);
    if (symbol.size % element.size_bytes != 0)
      fail(PIDCOMM_ERR_SIZE, "variable ", name, " has ", symbol.size,
           " bytes, which is not a whole number of elements of ", name_of_type(type));
    const uint64_t begin = symbol.address - kMramAddress;
    return View{nullptr,
                ranks_of(cube),
                name,
                begin,
                symbol.size / element.size_bytes,
                begin + whole_words(symbol.size),
                element};
  });
}

int pidcomm_buffer_slice(const pidcomm_buffer *buffer, size_t first, size_t count,
                         pidcomm_buffer **slice) {
  return guarded([&] {
    require(slice, "slice");
    *slice = nullptr;
    require(buffer, "buffer");
    const View &whole = buffer->view;
    if (first > whole.count || count > whole.count - first)
      fail(PIDCOMM_ERR_WINDOW, "a slice of ", count, " elements from element ", first,
           " passes the end of buffer ", whole.name, ", which has ", whole.count, " elements");
    View part = whole;
    part.begin += first * whole.type.size_bytes;
    part.count = count;
    // Only the padding behind the last element belongs to the slice.
    if (first + count != whole.count) part.end = part.begin + part.bytes();
    *slice = new pidcomm_buffer{std::move(part)};
  });
}

void pidcomm_buffer_destroy(pidcomm_buffer *buffer) { delete buffer; }

size_t pidcomm_buffer_count(const pidcomm_buffer *buffer) {
  return buffer == nullptr ? 0 : buffer->view.count;
}
size_t pidcomm_buffer_window(const pidcomm_buffer *buffer) {
  return buffer == nullptr ? 0 : buffer->view.window();
}
uint32_t pidcomm_buffer_address(const pidcomm_buffer *buffer) {
  return buffer == nullptr ? 0 : kMramAddress + static_cast<uint32_t>(buffer->view.begin);
}

int pidcomm_buffer_write(pidcomm_hypercube *cube, const pidcomm_buffer *buffer, const void *host,
                         size_t host_bytes) {
  return guarded([&] {
    move_rows(cube, buffer, static_cast<std::byte *>(const_cast<void *>(host)), host_bytes, true);
  });
}

int pidcomm_buffer_read(pidcomm_hypercube *cube, const pidcomm_buffer *buffer, void *host,
                        size_t host_bytes) {
  return guarded(
      [&] { move_rows(cube, buffer, static_cast<std::byte *>(host), host_bytes, false); });
}

int pidcomm_buffer_request(pidcomm_hypercube *cube, int collective, const char *mask,
                           const pidcomm_buffer *in, const pidcomm_buffer *out, int op,
                           pidcomm_request *request) {
  return guarded([&] {
    check_size(request, "request", kLargestBytes);
    deliver(request_of(cube, collective, mask, in, out, op), request);
  });
}

int pidcomm_buffer_run(pidcomm_hypercube *cube, int collective, const char *mask,
                       const pidcomm_buffer *in, const pidcomm_buffer *out, int op) {
  return guarded([&] {
    const pidcomm_request request = request_of(cube, collective, mask, in, out, op);
    check(pidcomm_run(cube, &request, nullptr, nullptr));
  });
}
