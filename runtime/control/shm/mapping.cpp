// Descriptors, mappings of memory, and files that are shared by descriptor.
#include "runtime/control/shm/mapping.h"

#include "runtime/sync/atomic.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace occl::bootstrap {

Mapping::~Mapping() {
  if (bytes.empty())
    return;
  // When schedules are explored: what is kept back must not be written to memory that is gone.
  threadFence(std::memory_order_seq_cst);
  munmap(bytes.data(), bytes.size());
}

static StatusOr<std::span<std::byte>> map(uint64_t size, int flags, int descriptor,
                                          const char *what, Access access = Access::ReadWrite) {
  const int protection = access == Access::ReadWrite ? PROT_READ | PROT_WRITE : PROT_READ;
  void *address = mmap(nullptr, size, protection, flags, descriptor, 0);
  if (address == MAP_FAILED)
    return systemError("cannot map " + std::to_string(size) + " bytes of " + what, errno);
  return std::span(static_cast<std::byte *>(address), size);
}

StatusOr<Mapping> Mapping::anonymous(uint64_t size) {
  auto bytes = map(size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, "anonymous memory");
  if (!bytes.ok())
    return bytes.status();
  Mapping mapping;
  mapping.bytes = *bytes;
  return mapping;
}

StatusOr<Mapping> Mapping::ofFile(int descriptor, uint64_t size, const char *what, Access access) {
  auto bytes = map(size, MAP_SHARED | MAP_NORESERVE, descriptor, what, access);
  if (!bytes.ok())
    return bytes.status();
  Mapping mapping;
  mapping.bytes = *bytes;
  return mapping;
}

StatusOr<Mapping> Mapping::ofPath(const std::string &path, uint64_t size, const std::string &what,
                                  Access access) {
  Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.valid()) {
    const int error = errno;
    Status status = systemError("cannot open " + what + ", " + path, error);
    // Who had it open is gone, or has closed it.
    return error == ENOENT || error == ESRCH ? Status(StatusCode::PeerFailed, status.message())
                                             : status;
  }
  // Mapped memory must keep its size, or an access would be the end of the process.
  struct stat info;
  if (fstat(file.get(), &info) != 0 || static_cast<uint64_t>(info.st_size) != size)
    return Status(StatusCode::Mismatch, what + " is not of " + std::to_string(size) + " bytes");
  if (info.st_uid != geteuid())
    return Status(StatusCode::Mismatch, what + " belongs to user " + std::to_string(info.st_uid) +
                                            ", expected this process's, " +
                                            std::to_string(geteuid()));
  if (int seals = fcntl(file.get(), F_GET_SEALS); seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return Status(StatusCode::Mismatch, what + " is not sealed: it might shrink");
  return ofFile(file.get(), size, what.c_str(), access);
}

Status allowStores(std::span<std::byte> pages) {
  if (!pages.empty() && mprotect(pages.data(), pages.size(), PROT_READ | PROT_WRITE) != 0)
    return systemError("cannot make " + std::to_string(pages.size()) +
                           " bytes of another rank's segment writable",
                       errno);
  return {};
}

int growFile(int descriptor, uint64_t bytes, bool reserve) {
  rlimit limit;
  // Beyond the limit a file cannot grow, and trying is the end of the process (SIGXFSZ).
  // A signal would end the process before any error is returned.
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
    return EFBIG;
  if (reserve) {
    int error = EINTR;
    // On older kernels a signal ends the call, and what it has reserved is undone.
    while (error == EINTR)
      error = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
    return error;
  }
  return ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
}

StatusOr<Descriptor> createSealedFile(const char *label, uint64_t bytes) {
  // The size is fixed by seals, so that a peer cannot shrink what others have mapped.
  Descriptor file(memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  int error = file.valid() ? growFile(file.get(), bytes, false) : errno;
  if (error == 0 && fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    error = errno;
  if (error != 0)
    return systemError("cannot create " + std::to_string(bytes) + " bytes of " + label, error);
  return file;
}

std::string descriptorPath(int thread, int number) {
  return "/proc/" + std::to_string(thread) + "/fd/" + std::to_string(number);
}

StatusOr<uint64_t> wholePages(uint64_t bytes) {
  auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (bytes == 0 || bytes > (1ull << 46))
    return Status(StatusCode::InvalidArgument, "the size of a rank's segment is " +
                                                   std::to_string(bytes) +
                                                   " bytes, expected 1 to 2^46");
  return (bytes + page - 1) / page * page;
}

} // namespace occl::bootstrap
