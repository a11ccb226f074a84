// The text by which ranks find out whether they may share memory.
#include "runtime/net/rendezvous/host_id.h"

#include "support/shared_memory_host.h"

#include <cstdlib>
#include <string>
#include <unistd.h>

namespace occl::net {

std::string hostId() {
  // The user's own host id counts before all else.
  for (const char *given : {std::getenv("OCCL_HOSTID"), std::getenv("NCCL_HOSTID")})
    if (given && *given)
      return std::string("given ") + given;
  return sharedMemoryHost() + " user " + std::to_string(geteuid());
}

} // namespace occl::net
