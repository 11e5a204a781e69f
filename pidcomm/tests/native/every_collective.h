// The codes of all collectives, for tests.
#pragma once

#include <pidcomm/pidcomm.h>

#define COLLECTIVE_ROW(ENUM, code, ...) code,
inline constexpr int kCollectives[] = {PIDCOMM_COLLECTIVES(COLLECTIVE_ROW)};
#undef COLLECTIVE_ROW
