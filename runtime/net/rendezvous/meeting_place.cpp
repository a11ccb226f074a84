// Finds an address and a free port of this machine where ranks can meet.
#include "runtime/net/rendezvous/meeting_place.h"

#include "runtime/net/rendezvous/handshake.h"

namespace occl::net {

StatusOr<MeetingPlace> MeetingPlace::open(const std::string &towards) {
  const auto [names, family] = InterfaceChoice::fromEnvironment();
  SocketAddress address;
  // Unless the user chooses interfaces, the way to the other host tells the address.
  if (names.empty() && family.empty() && !towards.empty())
    address = addressTowards(towards);
  if (address.length == 0)
    address = interfaceAddress(names, family);
  if (address.length == 0)
    return Status(StatusCode::SystemError, "no interface is up that OCCL_SOCKET_IFNAME or "
                                           "NCCL_SOCKET_IFNAME, and NCCL_SOCKET_FAMILY allow");
  // The port stays taken until rank 0 listens there.
  std::string why;
  HeldPort held = HeldPort::hold(why);
  if (held.number() == 0)
    return Status(StatusCode::SystemError, std::move(why));
  auto secret = drawHash();
  if (!secret.ok())
    return secret.status();
  address.setPort(held.number());
  return MeetingPlace(std::move(held), address.text() + "/" + hexadecimal(*secret));
}

} // namespace occl::net
