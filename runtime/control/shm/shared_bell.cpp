// Doorbells in memory of this process, and those that other processes share.
#include "runtime/control/shm/shared_bell.h"

#include <cerrno>
#include <fcntl.h>
#include <new>
#include <unistd.h>
#include <utility>

namespace occl::bootstrap {

StatusOr<std::shared_ptr<SharedBell>> SharedBell::makePrivate() {
  auto memory = Mapping::anonymous(kBytes);
  if (!memory.ok())
    return memory.status();
  new (memory->get().data()) Doorbell;
  return std::shared_ptr<SharedBell>(new SharedBell(Descriptor(), std::move(*memory)));
}

StatusOr<std::shared_ptr<SharedBell>> SharedBell::makeShared() {
  auto file = createSealedFile("occl-bell", kBytes);
  if (!file.ok())
    return file.status();
  auto memory = Mapping::ofFile(file->get(), kBytes, "a device's doorbell");
  if (!memory.ok())
    return memory.status();
  new (memory->get().data()) Doorbell;
  return std::shared_ptr<SharedBell>(new SharedBell(std::move(*file), std::move(*memory)));
}

StatusOr<std::shared_ptr<SharedBell>> SharedBell::open(const std::string &path,
                                                       const std::string &what) {
  auto memory = Mapping::ofPath(path, kBytes, what, Access::ReadOnly);
  if (!memory.ok())
    return memory.status();
  // Ringing stores to the first page; the notices behind it are only read.
  if (Status allowed = allowStores(memory->get().first(kBellBytes)); !allowed.ok())
    return allowed;
  return std::shared_ptr<SharedBell>(new SharedBell(Descriptor(), std::move(*memory)));
}

} // namespace occl::bootstrap
