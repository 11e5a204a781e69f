// The sentences are the values of a POSIX key. A thread_local string has a destructor, which runs
// before the destructors of static objects, and these may call the library. Also, glibc ends the
// process if it has no memory to register such a destructor.
#include "capi/last_error.h"

#include <pthread.h>

#include <cstdlib>
#include <cstring>

namespace pidcomm::last_error {

namespace {

constexpr char kNoSentence[] =
    "the host is out of memory and cannot store the sentence of an error";

void release(void *sentence) {
  if (sentence != kNoSentence) std::free(sentence);
}

struct Key {
  pthread_key_t number = 0;
  bool exists = pthread_key_create(&number, release) == 0;
};

const Key &key() {
  static const Key made;
  return made;
}

void *stored() { return key().exists ? pthread_getspecific(key().number) : nullptr; }

/// Returns whether the sentence, which the caller has allocated, belongs to the thread now.
bool store(const char *sentence) {
  void *const before = stored();
  const bool is_stored = key().exists && pthread_setspecific(key().number, sentence) == 0;
  if (is_stored) release(before);
  return is_stored;
}

}  // namespace

const char *text() {
  if (!key().exists) return kNoSentence;
  const void *const sentence = stored();
  return sentence == nullptr ? "" : static_cast<const char *>(sentence);
}

void clear() {
  if (stored() != nullptr) store(nullptr);
}

void set(const char *sentence) {
  char *const copy = strdup(sentence);
  if (!store(copy != nullptr ? copy : kNoSentence)) std::free(copy);
}

}  // namespace pidcomm::last_error
