// What communicators that are made of others have in common.
#pragma once

#include "nccl/comm/handles.h"
#include "nccl/fallback/other_comm.h"
#include "nccl/streams/streams.h"

namespace occl::nccl {

/// What all ranks that take part call the next communicator made in that way.
inline std::string nextOf(const std::string &way, uint64_t number) {
  return way + " " + std::to_string(number);
}

/// A communicator made of `parent` by divide(parent, its executor, the new one, its executor), in
/// parent's next turn. `way`, of which `number` counts, tells it from others made of `parent`.
template <class Divide>
Outcome beginDivision(Comm &parent, const ncclConfig_t *given, ncclComm_t *handle,
                      const std::string &way, std::atomic<uint64_t> &number, Divide divide) {
  Config config = parent.config;
  if (Outcome outcome = readConfig(given, config); !outcome.ok())
    return outcome;
  auto comm = std::make_shared<Comm>(config, parent.device);
  comm->ownStream = parent.ownStream;
  comm->lineage = parent.lineage.child(nextOf(way, number++));
  const Comm::Turn turn = parent.nextDivision();
  Outcome begun = comm->begin([turn, divide, to = comm.get()](Executor &made) {
    Executor of;
    turn.await();
    Outcome outcome = turn.comm->connected(of);
    if (outcome.ok() && of.other)
      outcome = streams().makeCurrent(turn.comm->device);
    if (outcome.ok())
      outcome = divide(*turn.comm, of, *to, made);
    turn.end();
    return outcome;
  });
  if (!begun.ok()) {
    turn.await(); // later divisions go on
    turn.end();
    return begun;
  }
  if (handle)
    *handle = addHandle(comm);
  return {};
}

/// What ends the making of the other library's communicator.
inline OtherComm::Failure endOf(Comm &comm) {
  return [&comm] {
    return comm.isAborted() ? invalidUsage("the communicator was aborted") : Outcome();
  };
}

} // namespace occl::nccl
