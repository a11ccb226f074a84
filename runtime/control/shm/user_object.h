// Objects of POSIX shared memory that belong to one user, "/dev/shm/occl-<uid>-<name>". /dev/shm is
// open to all users, and the names can be guessed. So a file is examined before anything else is
// done with it: what belongs to another user, or can be written by one, is neither locked nor
// mapped nor read. A directory of the user's own would not do without that either, since its name
// can be taken as well, and would be left behind.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/shm/lockable_file.h"
#include "runtime/sync/deadline.h"

#include <cstdint>
#include <functional>
#include <string>

namespace occl::bootstrap {

struct UserObject {
  LockableFile file;
  uint64_t bytes = 0;
};

/// What shm_open() and shm_unlink() call the object: "/occl-<uid>-<name>".
std::string userObjectName(const std::string &name);

/// Opens the object; flags: O_CREAT or 0. Errors name the object. Mismatch if it is not a file that
/// only this user can read and write: then it says whose it is. SystemError.
StatusOr<UserObject> openUserObject(const std::string &name, int flags);

/// Removes its name. SystemError if the object keeps it.
Status removeUserObject(const std::string &name);

/// Calls visit(name) for every object that belongs to this user, until the deadline.
void forEachUserObject(const Deadline &deadline,
                       const std::function<void(const std::string &name)> &visit);

} // namespace occl::bootstrap
