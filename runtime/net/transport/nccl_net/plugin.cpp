// Loads network plugins of NCCL, each once a process.
#include "runtime/net/transport/nccl_net/plugin.h"

#include "runtime/base/process_identity.h"
#include "runtime/net/transport/nccl_net/versions.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/mutex.h"

#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <unistd.h>

namespace occl::net {
namespace {

const char *meaningOf(int result) {
  // The numbers are those of ncclResult_t.
  switch (result) {
  case nccl::kCudaError:
    return "an error of CUDA";
  case nccl::kSystemError:
    return "an error of the system";
  case nccl::kInternalError:
    return "an internal error";
  case nccl::kInvalidArgument:
    return "an invalid argument";
  case nccl::kInvalidUsage:
    return "invalid usage";
  case nccl::kRemoteError:
    return "an error of the peer";
  default:
    return "unknown";
  }
}

struct Loaded {
  Mutex mutex;
  std::map<std::string, StatusOr<const NcclNetPlugin *>> byName;
  /// A library may have several names, such as "" and its path.
  std::map<void *, const NcclNetPlugin *> byLibrary;
};

/// Of each process its own.
constinit PerProcess<Loaded> theLoaded;

/// Set by the process that has loaded a plugin, and seen by its children.
Atomic<pid_t> loadedBy{0};

/// With the lock.
StatusOr<const NcclNetPlugin *> loadNow(Loaded &loaded, const std::string &name) {
  // A plugin's threads do not exist in a child of fork().
  if (const pid_t other = loadedBy.load(); other != 0 && other != getpid())
    return Status(StatusCode::SystemError,
                  "this process was made by fork() after its parent had loaded a network plugin");
  std::string why;
  void *library = nullptr;
  // The first file that can be loaded counts; the errors of all are told if none can.
  for (const std::string &file : ncclNetFiles(name))
    if (library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); library)
      break;
    else
      why += (why.empty() ? "" : "; ") + std::string(dlerror());
  if (!library)
    return Status(StatusCode::SystemError, "no network plugin of NCCL can be loaded: " + why);
  if (const auto found = loaded.byLibrary.find(library); found != loaded.byLibrary.end())
    return found->second;
  auto plugin = newestNcclNet(dlsym, library);
  if (!plugin)
    return Status(StatusCode::SystemError, "'" + name +
                                               "' is no network plugin of NCCL of a version from 8 "
                                               "to 12: it has no symbol ncclNetPlugin_v8 to v12");
  loadedBy.store(getpid());
  return loaded.byLibrary[library] = plugin.release();
}

} // namespace

Status NcclNetPlugin::error(const char *function, int result) const {
  return {StatusCode::SystemError, "plugin " + name + ": " + function + "() has failed with " +
                                       std::to_string(result) + " (" + meaningOf(result) + ")"};
}

std::vector<std::string> ncclNetFiles(std::string_view name) {
  if (name.empty())
    return {"libnccl-net.so"};
  if (name.find('/') != std::string_view::npos || name.ends_with(".so"))
    return {std::string(name)};
  return {"libnccl-net-" + std::string(name) + ".so", std::string(name)};
}

StatusOr<const NcclNetPlugin *> loadNcclNet(const std::string &name) {
  Loaded &loaded = theLoaded.get();
  std::lock_guard lock(loaded.mutex);
  // A failure is remembered, too, and told to all who ask again.
  const auto found = loaded.byName.find(name);
  return found != loaded.byName.end()
             ? found->second
             : loaded.byName.emplace(name, loadNow(loaded, name)).first->second;
}

} // namespace occl::net
