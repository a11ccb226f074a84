// Reads memory of other processes of this machine by process_vm_readv().
#include "runtime/exec/host/peer_memory.h"

#include <cerrno>
#include <cstdlib>
#include <dirent.h>
#include <memory>
#include <string>
#include <sys/uio.h>

namespace occl::interpreter {

bool PeerMemory::read(Reference reference, char *to, uint64_t bytes) const {
  if (copy(process, reference, to, bytes))
    return true;
  if (errno != ESRCH)
    return false;
  // The kernel finds memory by a thread that is alive, and main() may have left to other threads
  // what there is to do.
  std::string path = "/proc/" + std::to_string(process) + "/task";
  std::unique_ptr<DIR, int (*)(DIR *)> threads(opendir(path.c_str()), closedir);
  errno = ESRCH;
  while (const dirent *entry = threads ? readdir(threads.get()) : nullptr) {
    const int32_t thread = std::atoi(entry->d_name);
    if (thread != 0 && copy(thread, reference, to, bytes))
      return true;
  }
  return false;
}

bool PeerMemory::copy(int32_t thread, Reference reference, char *to, uint64_t bytes) {
  while (bytes != 0) {
    iovec local = {to, bytes};
    iovec remote = {reinterpret_cast<void *>(reference), bytes};
    // The system may copy less than it is asked for.
    ssize_t got = process_vm_readv(thread, &local, 1, &remote, 1, 0);
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
