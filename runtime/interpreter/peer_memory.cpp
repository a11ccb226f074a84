#include "runtime/interpreter/peer_memory.h"

#include <cerrno>
#include <sys/uio.h>

namespace occl::interpreter {

bool PeerMemory::read(Reference reference, char *to, uint64_t bytes) const {
  while (bytes != 0) {
    iovec local = {to, bytes};
    iovec remote = {reinterpret_cast<void *>(reference), bytes};
    ssize_t got = process_vm_readv(process, &local, 1, &remote, 1, 0);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0) {
      errno = got == 0 ? EFAULT : errno;
      return false;
    }
    to += got;
    reference += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
  return true;
}

bool canRead(int32_t process, Reference address, uint64_t probe) {
  uint64_t seen = 0;
  PeerMemory memory = {nullptr, 0, process};
  return memory.read(address, reinterpret_cast<char *>(&seen), sizeof seen) && seen == probe;
}

} // namespace occl::interpreter
