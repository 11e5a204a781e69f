/// devprivate.h: output for developers of the SDK's simulator. In the emulator, the macro evaluates
/// its argument and prints nothing.
#ifndef PE_DEVPRIVATE_H
#define PE_DEVPRIVATE_H

#define tell(reg, val) ((void)(reg))

#endif  // PE_DEVPRIVATE_H
