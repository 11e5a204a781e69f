/// soft_cache.h: programs use MRAM objects as ordinary variables. attributes.h is enough; there is no cache to start or flush.
#ifndef PE_SOFT_CACHE_H
#define PE_SOFT_CACHE_H

#include <attributes.h>

#endif  // PE_SOFT_CACHE_H
