// Sockets, as far as ranks and the root of an id need them.
#pragma once

#include "nccl/bootstrap/messages.h"
#include "nccl/bootstrap/socket.h"
#include "support/own_address.h"

#include <string>
#include <sys/socket.h>

namespace occl::nccl {

using Address = SocketAddress;

/// In the abstract namespace: reached from the same network namespace alone, gone with its process.
Address localAddress(const std::array<uint8_t, 8> &rootName);
/// Of the interface that NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY choose; else the first that is
/// up and is neither a loopback nor docker's, else the loopback. Length 0 if there is none.
Address interfaceAddress();
/// To and from an id; length 0 and family 0 if there is none.
void storeAddress(const Address &address, IdLayout &id);
Address loadAddress(const IdLayout &id);

/// Listening there, not blocking; port 0 becomes that of the system. None if that is refused.
Socket listenAt(Address &address);

/// A port that is free, and becomes the address's. None, with the reason, if there is none, or no
/// address.
HeldPort holdPort(Address &address, std::string &why);

/// Whole messages, or false: the other side has gone, or has no room.
bool sendWhole(int file, const void *message, size_t bytes);

} // namespace occl::nccl
