// The size of `table` in assembly.S.
#define TABLE_BYTES 24
