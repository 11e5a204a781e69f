// Loops of `turns` iterations of operations on 64 bits, whose modelled cost the host checks.
#include <attributes.h>
#include <stdint.h>

enum { kLogic, kComplements, kRotation, kRotationBy32, kVariableRotation };

__host uint32_t topic;
__host uint32_t turns;
__host uint32_t left;
volatile uint64_t sink, a, b, c;

static uint64_t rotate(uint64_t value, uint32_t amount) {
  return value << amount | value >> (-amount & 63);
}

#define REPEAT(expression) \
  for (uint32_t i = 0; i < turns; ++i) sink = expression

int main(void) {
  const uint32_t amount = left & 63;
  switch (topic) {
    case kLogic:
      REPEAT(a ^ (b & c));
      break;
    case kComplements:
      REPEAT(a ^ (~b & c));
      break;
    case kRotation:
      REPEAT(rotate(a, 3));
      break;
    case kRotationBy32:
      REPEAT(rotate(a, 32));
      break;
    default:
      REPEAT(rotate(a, amount));
  }
  return 0;
}
