#include "nccl/bootstrap/socket.h"

namespace occl::nccl {

Socket Socket::open(const std::function<int()> &open) {
  Socket opened;
  opened.own = openInThisProcess(open);
  return opened;
}

Socket::~Socket() { closeInThisProcess(own); }

} // namespace occl::nccl
