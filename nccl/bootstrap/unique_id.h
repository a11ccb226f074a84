// The bytes by which ranks find each other.
#pragma once

#include "nccl/base/errors.h"
#include "nccl/bootstrap/machine.h"

#include <string>

namespace occl::nccl {

/// The 128 bytes of ncclUniqueId. Numbers are little endian.
struct IdLayout {
  char magic[4];     // "OCCL"
  uint32_t layout;   // 2
  MachineId machine; // of the process that has made it, its root
  std::array<uint8_t, 16>
      name;                   // random, of NCCL_COMM_ID and the number of the call, or of a lineage
  std::array<uint8_t, 8> key; // what a rank shows to the root
  std::array<uint8_t, 8> rootName; // of the root's local socket; 0: there is no root to ask
  uint16_t family;                 // 4 or 6; 0: the root listens on no network
  uint16_t port;
  std::array<uint8_t, 16> address; // the first four bytes of it with family 4
  char rest[52];                   // 0

  bool hasRoot() const { return rootName != std::array<uint8_t, 8>{}; }
};
static_assert(sizeof(IdLayout) == NCCL_UNIQUE_ID_BYTES);

/// Makes this process the root of the id, if it can listen. SystemError if the system gives no
/// random bytes.
Outcome makeUniqueId(ncclUniqueId &id);

/// What the ranks of a communicator have in common, and nobody else knows: each of them can make
/// the same ids from it without hearing from the others.
struct Lineage {
  std::array<uint8_t, 16> name{};
  std::array<uint8_t, 8> key{};

  /// Of a communicator that is made of this one's, in the way that `how` says.
  Lineage child(const std::string &how) const;
  /// That of a communicator with this lineage. Its root is whichever process serves it; ranks of
  /// the machine reach that by a socket of the id's own.
  IdLayout id() const;
};

/// Makes this process the root of such an id, unless another one is it already. SystemError if it
/// cannot listen.
Outcome serveId(IdLayout &id);

/// InvalidArgument if it is not such an id.
Outcome readUniqueId(const ncclUniqueId &id, IdLayout &layout);

/// The communicator's name for occlCommInitRank.
std::string nameOf(const IdLayout &id);

} // namespace occl::nccl
