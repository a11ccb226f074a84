#include "library.h"

#include <dlfcn.h>

#include <mutex>
#include <stdexcept>

namespace occl_torch {

namespace {
std::mutex mutex;
std::string loadedPath;
Library functions;
} // namespace

void loadLibrary(const std::string &path) {
  std::lock_guard<std::mutex> lock(mutex);
  if (path == loadedPath)
    return;
  if (!loadedPath.empty())
    throw std::runtime_error("OCCL is loaded from " + loadedPath + " and cannot be loaded from " +
                             path + " as well");
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw std::runtime_error(std::string("cannot load OCCL: ") + dlerror());
#define OCCL_TORCH_RESOLVE(name)                                                                   \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(handle, #name));               \
  if (!functions.name)                                                                             \
    throw std::runtime_error(path + " is too old: it has no " #name);
  OCCL_TORCH_FUNCTIONS(OCCL_TORCH_RESOLVE)
#undef OCCL_TORCH_RESOLVE
  loadedPath = path;
}

const Library &occl() {
  if (!functions.occlCommReport)
    throw std::runtime_error("OCCL's library is not loaded: import occl.torch");
  return functions;
}

} // namespace occl_torch
