/// string.h: functions for bytes and zero-terminated strings in WRAM.
#ifndef PE_STRING_H
#define PE_STRING_H

#include <stddef.h>

size_t strlen(const char *string);
size_t strnlen(const char *string, size_t max_len);

/// Return 0 if the arguments are equal, else the difference of the first unequal bytes as unsigned
/// chars.
int memcmp(const void *area1, const void *area2, size_t size);
int strcmp(const char *string1, const char *string2);
int strncmp(const char *string1, const char *string2, size_t size);

void *memset(void *area, int value, size_t size);
void *memcpy(void *destination, const void *source, size_t size);
void *memmove(void *destination, const void *source, size_t size);

/// Return the address of the first (strrchr: the last) byte that equals `character`, or NULL.
void *memchr(const void *area, int character, size_t size);
char *strchr(const char *string, int character);
char *strrchr(const char *string, int character);

char *strcat(char *destination, const char *source);
char *strncat(char *destination, const char *source, size_t size);
char *strcpy(char *destination, const char *source);
char *strncpy(char *destination, const char *source, size_t size);

/// Do the same as strcpy and strncpy, but return the address of the terminating zero (destination +
/// size if there is no zero).
char *stpcpy(char *destination, const char *source);
char *stpncpy(char *destination, const char *source, size_t size);

/// A PE has no locales, so strxfrm only copies bytes, and strcoll only compares bytes.
#define strxfrm strncpy
#define strcoll strcmp

/// Convert the string in place to lower case or upper case, or reverse the string, and return its
/// address.
char *strlwr(char *string);
char *strupr(char *string);
char *strrev(char *string);

/// Returns the name of an error number, or NULL for an unknown number.
/// Differs from the SDK: returns the name of the constant, such as "EINVAL", not a sentence.
char *strerror(int errnum);

/// strspn returns the length of the longest prefix of `string` whose characters are all in
/// `accept`. strcspn returns the length of the longest prefix without a character of `reject`.
size_t strspn(const char *string, const char *accept);
size_t strcspn(const char *string, const char *reject);

/// Returns the address of the first character that is in accept, or NULL.
char *strpbrk(const char *string, const char *accept);

/// Returns the address of the first occurrence of needle in haystack, or NULL. If needle is empty,
/// returns haystack.
char *strstr(const char *haystack, const char *needle);

/// Returns the next token between characters of delim, or NULL. str is the string at the first
/// call, and NULL at later calls; *saveptr keeps the position between calls. strtok_r overwrites
/// the delimiters with zeros.
char *strtok_r(char *str, const char *delim, char **saveptr);

/// Returns the token from *stringp to the next character of delim, which becomes a zero. The token
/// may be empty. After the call, *stringp points behind the delimiter, or is NULL after the last
/// token. Returns NULL if *stringp is NULL.
char *strsep(char **stringp, const char *delim);

#endif  // PE_STRING_H
