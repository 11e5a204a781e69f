/// soft_cache.h: on hardware, a software cache lets programs use MRAM objects as ordinary
/// variables. In the emulator, attributes.h suffices, and there is no cache to start or flush.
#ifndef PE_SOFT_CACHE_H
#define PE_SOFT_CACHE_H

#include <attributes.h>

#endif  // PE_SOFT_CACHE_H
