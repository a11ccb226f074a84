#include "nccl/fallback/library.h"

#include "nccl/base/environment.h"
#include "nccl/base/per_process.h"
#include "nccl/fallback/setting.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <mutex>
#include <optional>
#include <sys/stat.h>
#include <vector>

/// OCCL's libnccl.so.2 says by this name that it is: other copies of it are no other NCCL.
extern "C" const char occlIsThisNccl[] = "OCCL";

namespace occl::nccl {

namespace {

constexpr const char *kName = "libnccl.so.2";
constexpr int kLeastVersion = 21400; // ncclCommInitRankConfig

// The search needs RTLD_DEEPBIND: the other library calls functions by names that this one, which
// was loaded first, has as well. Sanitizers do not let anybody use it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kOwnNamesFirst = 0;
#else
constexpr int kOwnNamesFirst = RTLD_DEEPBIND;
#endif

/// Folders with the packages of Python's that libraries of this process are from.
std::vector<std::string> packageFolders() {
  // PyTorch comes with its NCCL in a package beside it. Which Python this is, nobody says; but
  // libraries of its packages are loaded, and their paths lead there.
  std::vector<std::string> folders;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *to) {
        const std::string path = info->dlpi_name ? info->dlpi_name : "";
        for (const char *part : {"/site-packages/", "/dist-packages/"}) {
          const size_t at = path.find(part);
          // The part up to and with the folder of packages; each folder once, in the order in which
          // libraries were loaded.
          if (at == std::string::npos)
            continue;
          auto &all = *static_cast<std::vector<std::string> *>(to);
          const std::string folder = path.substr(0, at + std::string(part).size());
          if (std::find(all.begin(), all.end(), folder) == all.end())
            all.push_back(folder);
        }
        return 0;
      },
      &folders);
  return folders;
}

std::vector<std::string> candidates() {
  // In the order in which a program would expect it: beside Python's packages, then the loader's
  // path, then the places of distributions.
  std::vector<std::string> found;
  // pip's nvidia-nccl-cu12 and -cu13 put it there.
  for (const std::string &folder : packageFolders())
    found.push_back(folder + "nvidia/nccl/lib/" + kName);
  const char *variable = std::getenv("LD_LIBRARY_PATH");
  const std::string path = variable ? variable : "";
  // An empty entry would be the current folder for the loader; a library is not taken from there.
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin)
      found.push_back(path.substr(begin, end - begin) + "/" + kName);
    begin = end + 1;
  }
  for (const char *folder :
       {"/usr/lib/x86_64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/", "/usr/lib64/", "/usr/lib/",
        "/usr/local/lib/", "/usr/local/cuda/lib64/", "/usr/local/nvidia/lib64/"})
    found.push_back(std::string(folder) + kName);
  return found;
}

bool isSameFile(const std::string &one, const std::string &other) {
  struct stat a = {}, b = {};
  return stat(one.c_str(), &a) == 0 && stat(other.c_str(), &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

std::string ownPath() {
  Dl_info info = {};
  return dladdr(occlIsThisNccl, &info) && info.dli_fname ? info.dli_fname : "";
}

/// NULL, with the reason, if it cannot be opened or is OCCL's.
void *openLibrary(const std::string &path, std::string &why) {
  // OCCL's own file has NCCL's name as well, and is often the first one found.
  if (isSameFile(path, ownPath())) {
    why = path + " is OCCL's";
    return nullptr;
  }
  // Locally, so that its names do not replace OCCL's in the program, and with its own names first,
  // so that it does not call OCCL's.
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | kOwnNamesFirst);
  if (!library) {
    why = dlerror();
    return nullptr;
  }
  // A copy under another path: found by a function that only OCCL has.
  if (dlsym(library, "occlIsThisNccl")) {
    dlclose(library);
    why = path + " is a copy of OCCL's";
    return nullptr;
  }
  return library;
}

Outcome readFunctions(void *library, OtherNccl &to) {
// One list of names declares the functions, exports them and looks them up here; those that a
// version has not stay NULL.
#define OCCL_NCCL_DONE(name) to.name = reinterpret_cast<decltype(to.name)>(dlsym(library, #name));
#define OCCL_NCCL_REFUSED(name) OCCL_NCCL_DONE(name)
#include "nccl/abi/names.def"
  // What every communicator of it needs. Others are asked for when they are called, so that older
  // versions can be used for what they do.
  const std::pair<const char *, bool> needed[] = {
      {"ncclGetVersion", to.ncclGetVersion},
      {"ncclGetUniqueId", to.ncclGetUniqueId},
      {"ncclGetErrorString", to.ncclGetErrorString},
      {"ncclCommInitRankConfig", to.ncclCommInitRankConfig},
      {"ncclCommGetAsyncError", to.ncclCommGetAsyncError},
      {"ncclCommCount", to.ncclCommCount},
      {"ncclCommUserRank", to.ncclCommUserRank},
      {"ncclCommFinalize", to.ncclCommFinalize},
      {"ncclCommDestroy", to.ncclCommDestroy},
      {"ncclCommAbort", to.ncclCommAbort},
      {"ncclGroupStart", to.ncclGroupStart},
      {"ncclGroupEnd", to.ncclGroupEnd}};
  for (auto [name, isThere] : needed)
    if (!isThere)
      return invalidUsage(to.path + " has no " + name + ": it is too old, or no NCCL");
  if (to.ncclGetVersion(&to.version) != ncclSuccess || to.version < kLeastVersion)
    return invalidUsage(to.title() + " is too old: 2.14 is the least");
  return {};
}

Outcome search(OtherNccl &to) {
  FallbackSetting fallback;
  if (Outcome outcome = readFallbackSetting(fallback); !outcome.ok())
    return outcome;
  if (!fallback.isAllowed)
    return invalidUsage("OCCL_NCCL_FALLBACK=0 forbids it");
  std::string why;
  // A library that the program names is used or refused: never another one in its place.
  if (auto given = setting("OCCL_NCCL_FALLBACK_LIBRARY")) {
    void *library = openLibrary(*given, why);
    to.path = *given;
    return library ? readFunctions(library, to)
                   : invalidUsage("OCCL_NCCL_FALLBACK_LIBRARY cannot be used: " + why);
  }
  // On hosts, a libnccl found by chance would want GPUs.
  if (isHostMode())
    return invalidUsage("with OCCL_NCCL_HOST=1 it is used only if OCCL_NCCL_FALLBACK_LIBRARY names "
                        "it");
  for (const std::string &path : candidates()) {
    struct stat info = {};
    if (stat(path.c_str(), &info) != 0)
      continue;
    if (void *library = openLibrary(path, why)) {
      to.path = path;
      return readFunctions(library, to);
    }
    // With NCCL_DEBUG=INFO, so that one can see why it was not taken.
    log(LogLevel::Info, "not used in OCCL's place: " + why);
  }
  return invalidUsage("no other libnccl.so.2 is found; OCCL_NCCL_FALLBACK_LIBRARY names one");
}

struct Opened {
  std::mutex mutex;
  std::optional<Outcome> result;
  OtherNccl functions;
  std::atomic<bool> isThere = false;
};

constinit PerProcess<Opened> theOther;

} // namespace

std::string OtherNccl::title() const {
  return path + " (" + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
         "." + std::to_string(version % 100) + ")";
}

Outcome OtherNccl::outcomeOf(ncclResult_t result) const {
  if (result == ncclSuccess || result == ncclInProgress)
    // While it works on a call there is no error yet.
    return {result, ""};
  const char *text = ncclGetErrorString(result);
  std::string whole = path + ": " + (text ? text : "an error without a text");
  // Both texts: the general one says what kind of error this is, the other one what happened.
  const char *last = ncclGetLastError ? ncclGetLastError(nullptr) : nullptr;
  if (last && *last)
    whole += std::string(": ") + last;
  return {result, whole};
}

Outcome openOther(const OtherNccl *&other) {
  Opened &opened = theOther.get();
  std::lock_guard lock(opened.mutex);
  // Searched once: the outcome, also a failure, is the same for all communicators of the process.
  if (!opened.result) {
    opened.result = search(opened.functions);
    opened.isThere = opened.result->ok();
  }
  other = &opened.functions;
  return *opened.result;
}

const OtherNccl *otherIfOpen() {
  Opened &opened = theOther.get();
  return opened.isThere ? &opened.functions : nullptr;
}

} // namespace occl::nccl
