// The object behind a pidcomm_stream.
#pragma once

#include "stream/stream.h"

struct pidcomm_stream {
  pidcomm::Stream stream;
};
