// How ranks that have met connect to each other: one connection for each two.
#pragma once

#include "runtime/base/status.h"
#include "runtime/net/rendezvous/rendezvous.h"
#include "runtime/net/rendezvous/socket.h"
#include "runtime/sync/deadline.h"

#include <cstdint>
#include <vector>

namespace occl::net {

/// To the ranks `others`, ascending, all of which do the same. By rank; those of ranks that are not
/// among them are not valid. Of these rank 0 gives up the connections of the meeting. Errors are
/// those of connectAndIntroduce() and Reception::next(), and name the ranks that this one cannot
/// connect to or that have not come. PeerFailed, soon, names one of them that is gone.
StatusOr<std::vector<Descriptor>> connectMesh(const Meeting &meeting, Met &met,
                                              const std::vector<uint32_t> &others,
                                              const Deadline &deadline);

} // namespace occl::net
