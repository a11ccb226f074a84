// Objects in POSIX shared memory of one user, checked against those of others.
#include "runtime/control/shm/user_object.h"

#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace occl::bootstrap {
namespace {

constexpr const char *kDirectory = "/dev/shm";

std::string prefix() { return "occl-" + std::to_string(geteuid()) + "-"; }

bool isPrivate(const struct stat &info) {
  return S_ISREG(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 077) == 0;
}

/// Of a file that is not private.
Status notPrivate(const std::string &object, const struct stat &info) {
  std::string text = "shared memory " + (kDirectory + object);
  if (info.st_uid != geteuid())
    text += " belongs to user " + std::to_string(info.st_uid) + ", expected this process's, " +
            std::to_string(geteuid());
  else if (!S_ISREG(info.st_mode))
    text += " is not a file";
  else
    text += " can be accessed by other users";
  return {StatusCode::Mismatch,
          text + ". It was not made by OCCL: have it removed, or use another name"};
}

} // namespace

std::string userObjectName(const std::string &name) { return "/" + prefix() + name; }

StatusOr<UserObject> openUserObject(const std::string &name, int flags) {
  const std::string object = userObjectName(name);
  // A link or a pipe of another user is neither followed nor waited for.
  Descriptor file(
      shm_open(object.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0600));
  struct stat info {};
  if (!file.valid()) {
    int error = errno;
    // Whatever keeps it from being opened: it may be another user's.
    if (lstat((kDirectory + object).c_str(), &info) == 0 && !isPrivate(info))
      return notPrivate(object, info);
    return systemError("cannot open shared memory " + object, error);
  }
  // The name may belong to something that this library has not made.
  if (fstat(file.get(), &info) != 0)
    return systemError("cannot examine shared memory " + object, errno);
  if (!isPrivate(info))
    return notPrivate(object, info);
  return UserObject{LockableFile(std::move(file), info), static_cast<uint64_t>(info.st_size)};
}

Status removeUserObject(const std::string &name) {
  const std::string object = userObjectName(name);
  if (shm_unlink(object.c_str()) != 0 && errno != ENOENT)
    return systemError("cannot remove shared memory " + object, errno);
  return {};
}

void forEachUserObject(const Deadline &deadline,
                       const std::function<void(const std::string &name)> &visit) {
  std::unique_ptr<DIR, int (*)(DIR *)> directory(opendir(kDirectory), closedir);
  const std::string start = prefix();
  // The directory may be full of files of other programs.
  while (directory && !deadline.passed()) {
    const dirent *entry = readdir(directory.get());
    if (!entry)
      return;
    struct stat info {};
    if (std::strncmp(entry->d_name, start.c_str(), start.size()) == 0 &&
        fstatat(dirfd(directory.get()), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        isPrivate(info))
      visit(entry->d_name + start.size());
  }
}

} // namespace occl::bootstrap
