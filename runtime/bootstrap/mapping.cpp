#include "runtime/bootstrap/mapping.h"

#include <cerrno>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace occl::bootstrap {

Descriptor::~Descriptor() {
  if (number >= 0)
    close(number);
}

Mapping::~Mapping() {
  if (!bytes.empty())
    munmap(bytes.data(), bytes.size());
}

static StatusOr<std::span<std::byte>> map(uint64_t size, int flags, int descriptor,
                                          const char *what) {
  void *address = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, descriptor, 0);
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

StatusOr<Mapping> Mapping::ofFile(int descriptor, uint64_t size, const char *what) {
  auto bytes = map(size, MAP_SHARED | MAP_NORESERVE, descriptor, what);
  if (!bytes.ok())
    return bytes.status();
  Mapping mapping;
  mapping.bytes = *bytes;
  return mapping;
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
