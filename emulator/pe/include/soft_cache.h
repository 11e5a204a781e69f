/// soft_cache.h: MRAM objects as ordinary variables. attributes.h suffices; there is no cache to start or flush.
#ifndef PE_SOFT_CACHE_H
#define PE_SOFT_CACHE_H

#include <attributes.h>

#endif  // PE_SOFT_CACHE_H
