/// stdint.h: gcc's header. As in the SDK, this header includes <limits.h>.
#ifndef PE_STDINT_H
#define PE_STDINT_H

#include <limits.h>
#ifndef __ASSEMBLER__
#include_next <stdint.h>
#endif

#endif  // PE_STDINT_H
