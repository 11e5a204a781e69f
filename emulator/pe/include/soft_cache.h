/// soft_cache.h: MRAM objects as ordinary variables. Nothing to start or flush: attributes.h says it all.
#ifndef PE_SOFT_CACHE_H
#define PE_SOFT_CACHE_H

#include <attributes.h>

#endif  // PE_SOFT_CACHE_H
