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

Header header_of(const Intent &intent) {
  Header header{};
  header.status = intent.status;
  header.pieces = intent.pieces;
  std::memcpy(header.text, intent.text.data(), std::min(intent.text.size(), sizeof header.text - 1));
  return header;
}

}  // namespace

uint32_t agree(Link &link, const Intent &intent) {
  const uint32_t hosts = link.hosts(), own = link.host();
  const auto buffers = std::make_shared<std::vector<Header>>(hosts + 1);
  std::vector<Header> &headers = *buffers;
  Header &sent = headers[hosts];
  headers[own] = sent = header_of(intent);
  std::vector<Transfer> transfers;
  const auto add = [&](uint32_t host, bool is_send, Header &header) {
    transfers.push_back({host, is_send, reinterpret_cast<std::byte *>(&header), 1, sizeof header, sizeof header});
  };
  for (uint32_t n = 1; n < hosts; ++n) {
    add((own + hosts - n) % hosts, false, headers[(own + hosts - n) % hosts]);
    add((own + n) % hosts, true, sent);
  }
  try {
    link.exchange(transfers);
  } catch (const Error &) {
    keep_forever(buffers);
    throw;
  }
  for (uint32_t host = 0; host < hosts; ++host)
    if (headers[host].status != PIDCOMM_OK)
      fail(static_cast<pidcomm_status>(headers[host].status), "host ", host, " refuses the call: ", headers[host].text);
  for (uint32_t host = 1; host < hosts; ++host)
    if (std::strcmp(headers[0].text, headers[host].text) != 0)
      fail(PIDCOMM_ERR_ARGUMENT, "the hosts make different calls: host 0: ", headers[0].text, "; host ", host, ": ", headers[host].text);
  return headers[0].pieces;
}

}  // namespace pidcomm
