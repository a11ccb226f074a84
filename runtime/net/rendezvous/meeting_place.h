// Where ranks of several machines can meet, found by the process that is to be their rank 0.
#pragma once

#include "runtime/base/status.h"
#include "support/own_address.h"

#include <string>

namespace occl::net {

/// Holds a port until rank 0 listens there.
class MeetingPlace {
public:
  /// Of the interface that OCCL_SOCKET_IFNAME, or NCCL_SOCKET_IFNAME, and NCCL_SOCKET_FAMILY
  /// choose, if one of them is set; else of the address by which this machine reaches the host
  /// `towards`, which may be "" or known by loopback alone; else of the first interface.
  /// SystemError.
  static StatusOr<MeetingPlace> open(const std::string &towards);

  /// A name for MachineGroupOptions: HOST:PORT/SECRET. The secret is 256 random bits.
  const std::string &name() const { return text; }

private:
  MeetingPlace(HeldPort held, std::string text) : held(std::move(held)), text(std::move(text)) {}

  HeldPort held;
  std::string text;
};

} // namespace occl::net
