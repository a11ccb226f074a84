// Where ranks of several machines find each other: occl_rendezvous.h.
#include "runtime/api/capi/error.h"
#include "runtime/api/occl_rendezvous.h"
#include "runtime/net/rendezvous/host_id.h"
#include "runtime/net/rendezvous/meeting_place.h"
#include "support/text/copy_out.h"

#include <memory>

using namespace occl;
using namespace occl::communicator;

struct occlRendezvous_st {
  net::MeetingPlace place;
};

occlResult_t occlHostId(char *text, size_t capacity, size_t *length) {
  if (!text && capacity > 0)
    return reportInvalid("occlHostId", "text must not be NULL");
  return guarded([&]() -> Status {
    copyOut(net::hostId(), text, capacity, length);
    return {};
  });
}

occlResult_t occlRendezvousOpen(const char *towards, occlRendezvous_t *rendezvous,
                                const char **name) {
  if (!rendezvous || !name)
    return reportInvalid("occlRendezvousOpen", "rendezvous and name must not be NULL");
  return guarded([&]() -> Status {
    auto place = net::MeetingPlace::open(towards ? towards : "");
    if (!place.ok())
      return place.status();
    *rendezvous = new occlRendezvous_st{std::move(*place)};
    // The name is the rendezvous' own and valid until it is closed.
    *name = (*rendezvous)->place.name().c_str();
    return {};
  });
}

occlResult_t occlRendezvousClose(occlRendezvous_t rendezvous) {
  delete rendezvous;
  return occlSuccess;
}
