#include "hosts/agreement.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace pidcomm {

namespace {

struct Header {
  int32_t status;
  uint32_t pieces;
  char text[504];  // with a final 0 byte
};
static_assert(sizeof(Header) == Link::kHeaderBytes);

Header header_of(const Intent &intent) {
  Header header{};
  header.status = intent.status;
  header.pieces = intent.pieces;
  std::memcpy(header.text, intent.text.data(),
              std::min(intent.text.size(), sizeof header.text - 1));
  return header;
}

}  // namespace

uint32_t agree(Link &link, const Intent &intent) {
  const uint32_t hosts = link.hosts();
  const auto buffers = std::make_shared<std::vector<Header>>(hosts + 1);
  std::vector<Header> &headers = *buffers;
  Header &own = headers[hosts];
  own = header_of(intent);
  try {
    link.exchange_headers(reinterpret_cast<const std::byte *>(&own),
                          reinterpret_cast<std::byte *>(headers.data()), sizeof own);
  } catch (const Error &) {
    keep_forever(buffers);
    throw;
  }
  for (uint32_t host = 0; host < hosts; ++host)
    if (headers[host].status != PIDCOMM_OK)
      fail(static_cast<pidcomm_status>(headers[host].status), "host ", host,
           " refuses the call: ", headers[host].text);
  for (uint32_t host = 1; host < hosts; ++host)
    if (std::strcmp(headers[0].text, headers[host].text) != 0)
      fail(PIDCOMM_ERR_ARGUMENT, "the hosts make different calls: host 0: ", headers[0].text,
           "; host ", host, ": ", headers[host].text);
  return headers[0].pieces;
}

}  // namespace pidcomm
