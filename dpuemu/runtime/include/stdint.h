/// stdint.h: gcc's header. As in the SDK, this header includes <limits.h>.
#ifndef PE_STDINT_H
#define PE_STDINT_H

#include <limits.h>
#include_next <stdint.h>

#endif  // PE_STDINT_H
