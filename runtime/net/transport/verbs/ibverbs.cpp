// Loads libibverbs where it is installed.
#include "runtime/net/transport/verbs/ibverbs.h"

#include "runtime/base/process_identity.h"

#include <dlfcn.h>
#include <string>

namespace occl::net {
namespace {

constexpr const char *kLibrary = "libibverbs.so.1";

/// Its functions, or why there are none.
struct Library {
  Library() : found(load()) {}

  Ibverbs functions;
  const StatusOr<const Ibverbs *> found;

private:
  StatusOr<const Ibverbs *> load();
};

StatusOr<const Ibverbs *> Library::load() {
  // Its symbols stay local: the program may link a library of its own.
  void *library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Status(StatusCode::SystemError, std::string(kLibrary) + " cannot be loaded");
  const char *missing = nullptr;
  const auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (!function)
      missing = name;
  };
#define OCCL_IBVERBS_FIND(name) find(functions.name, "ibv_" #name);
  OCCL_IBVERBS(OCCL_IBVERBS_FIND)
#undef OCCL_IBVERBS_FIND
  // A library that lacks one function is too old for all.
  if (missing)
    return Status(StatusCode::SystemError, std::string(kLibrary) + " has no " + missing);
  return &functions;
}

} // namespace

StatusOr<const Ibverbs *> Ibverbs::load() {
  // Never unloaded: threads may still poll when the process ends. A child of fork() loads it
  // itself: its parent may have been in the middle of that.
  static constinit PerProcess<Library> library;
  return library.get().found;
}

} // namespace occl::net
