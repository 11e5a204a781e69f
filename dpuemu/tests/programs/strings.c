// string.h on bytes from the host, and functions that hosts lack: strlwr, strupr, strrev, strerror.
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "expect.h"
#include "string_case.h"

__host uint8_t bytes[CASE_BYTES];
__host struct string_case cases[CASES];
__host struct string_result results[CASES];

static void own_functions(void) {
  char word[] = "aBc-Z9@[`{";
  EXPECT(strlwr(word) == word);
  EXPECT(strcmp(word, "abc-z9@[`{") == 0);
  EXPECT(strupr(word) == word);
  EXPECT(strcmp(word, "ABC-Z9@[`{") == 0);
  EXPECT(strrev(word) == word);
  EXPECT(strcmp(word, "{`[@9Z-CBA") == 0);
  char none[] = "";
  EXPECT(strrev(none) == none && none[0] == 0);
  EXPECT(strerror(EINVAL) != NULL && strlen(strerror(EINVAL)) > 0);
  EXPECT(strcmp(strerror(EINVAL), strerror(ENOMEM)) != 0);
  EXPECT(strerror(12345) == NULL);
  EXPECT(strxfrm(word, "locale", 7) == word && strcmp(word, "locale") == 0);
}

int main(void) {
  static uint8_t copy[CASE_BYTES];
  own_functions();
  for (uint32_t i = 0; i < CASES; ++i) {
    memcpy(copy, bytes, CASE_BYTES);
    results[i].value = call_case(copy, &cases[i]);
    results[i].checksum = case_checksum(copy);
  }
  return 0;
}
