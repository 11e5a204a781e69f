/* require: ends a program with the library's sentence if a call has failed. */
#ifndef REQUIRE_H
#define REQUIRE_H

#include <pidcomm/pidcomm.h>
#include <stdio.h>
#include <stdlib.h>

static inline void require(int status) {
  /* [error] */
  if (status != PIDCOMM_OK) {
    fprintf(stderr, "%s: %s\n", pidcomm_status_name(status), pidcomm_last_error());
    exit(EXIT_FAILURE);
  }
  /* [end] */
}

#endif
