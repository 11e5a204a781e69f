/// sysdef.h: types of tasklet numbers.
#ifndef PE_SYSDEF_H
#define PE_SYSDEF_H

typedef unsigned int thread_id_t;  // 0 to 23

/// The number of a tasklet or of another system object.
typedef unsigned int sysname_t;

#endif  // PE_SYSDEF_H
