// Which instruction receives what which other one sends.
#pragma once

#include "plan/model/plan.h"

#include <string>
#include <vector>

namespace occl::plan {

/// A message of a tile, or a signal, on its way to one of the ranks that get it.
struct Message {
  uint32_t sender = 0, receiver = 0; // in Plan::instructions
  uint32_t destination = 0;          // the receiver's rank
  uint32_t connection = 0;
  uint32_t number = 0; // on its connection, from 0 on, within the tile
  bool isSignal = false;

  bool operator==(const Message &) const = default;
};

/// The k-th message that is appended to a connection is the k-th that each of its destinations
/// takes from it; a wait for v signals is ended by the v-th. By connection, receiving rank, and
/// number. The plan's indices must be in range; what nobody sends or receives is left out.
std::vector<Message> messagesOf(const Plan &plan);

/// What tells a message from all others of an invocation: the same on both sides.
std::string nameOfMessage(const Message &message, uint64_t tile);

} // namespace occl::plan
