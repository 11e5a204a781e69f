/// The network of the conventional machine, for single-threaded engines: packets in order of
/// arrival. The instructions of these functions count as network, except one for each word of a
/// body, which counts as a copy.
#pragma once

#include <stddef.h>

#include "mpi/engine.h"

/// The head of a packet. kind, sender and receiver belong to the engine.
typedef struct wire_head {
  int kind;
  mpi_envelope envelope;
  size_t bytes;  ///< of the message
  size_t body;   ///< of the packet's body
  void *sender;
  void *receiver;
} wire_head;

/// Sends a packet with head->body bytes of body to a node, which may be the sender. Does not wait.
void wire_send(int node, const wire_head *head, const void *body);
/// Writes the head of the next packet. Returns 0 if there is none; if `waits`, waits for one.
int wire_receive(wire_head *head, int waits);
/// Stores the first `bytes` bytes of the body of the packet that wire_receive returned last.
void wire_body(void *to, size_t bytes);
