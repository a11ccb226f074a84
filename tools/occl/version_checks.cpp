#include "tools/occl/version_checks.h"

#include "runtime/api/occl.h"
#include "tools/command_line/app.h"
#include "tools/occl/programs.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace occl::driver {

namespace {

constexpr const char *kOneVersion = "install all of one version: until 1.0 they fit no other";

/// The value of a setting, or "" if it is not set.
std::string setting(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

bool areSameFile(const std::string &one, const std::string &other) {
  std::error_code failure;
  return std::filesystem::equivalent(one, other, failure) && !failure;
}

/// That programs load. Only the library itself knows its version.
void checkLibrary(Report &report) {
  const std::string given = setting("OCCL_LIBRARY");
  const std::string beside = pathOfLibrary();
  const LoadedLibrary library(!given.empty() ? given : beside.empty() ? kLibraryName : beside);
  if (!library)
    return report.add(given.empty() ? Finding::Limited : Finding::Broken, kLibraryName,
                      library.problem(),
                      given.empty() ? "programs do not find it: `make install`, ldconfig or "
                                      "LD_LIBRARY_PATH"
                                    : "OCCL_LIBRARY names it: mend or unset that");
  const std::string path = library.pathOf("occlCommDestroy");
  using GetVersion = occlResult_t (*)(uint32_t *, uint32_t *);
  const auto ask = reinterpret_cast<GetVersion>(library.symbol("occlGetVersion"));
  uint32_t major = 0, minor = 0;
  if (!ask || ask(&major, &minor) != occlSuccess)
    return report.add(Finding::Broken, kLibraryName, path + " does not say its version",
                      std::string("it is older than this program: ") + kOneVersion);
  const std::string version = fmt::format("{}.{}", major, minor);
  if (version != tools::version())
    report.add(Finding::Broken, kLibraryName, version + ", " + path, kOneVersion);
  else
    report.add(Finding::Good, kLibraryName, version + ", " + path);
}

/// That programs are compiled with, where it is installed beside this program.
void checkHeader(Report &report) {
  const std::string path = pathOfHeader();
  if (path.empty())
    return;
  const std::string version = versionInHeader(path).value_or("no version");
  report.add(version == tools::version() ? Finding::Good : Finding::Broken, "occl.h",
             version + ", " + path, version == tools::version() ? "" : kOneVersion);
}

/// Versions of packages, by name, as the python3 of PATH has them installed; nothing is imported.
std::map<std::string, std::string> pythonPackages() {
  constexpr const char *kCommand =
      "python3 -c 'import importlib.metadata as m\n"
      "for d in m.distributions():\n"
      "  n = (d.metadata[\"Name\"] or \"\").lower()\n"
      "  if n in (\"occl\", \"torch\") or n.startswith(\"nvidia-nccl\"): print(n, d.version)' "
      "2>/dev/null";
  std::map<std::string, std::string> found;
  FILE *pipe = popen(kCommand, "r");
  if (!pipe)
    return found;
  char line[256];
  while (std::fgets(line, sizeof line, pipe)) {
    std::istringstream words(line);
    std::string name, version;
    if (words >> name >> version)
      found.emplace(name, version);
  }
  pclose(pipe);
  return found;
}

void checkPython(Report &report, const std::map<std::string, std::string> &packages) {
  if (const auto found = packages.find("occl"); found != packages.end()) {
    const Version version = versionOf(found->second);
    const bool isSame = version == Version{OCCL_VERSION_MAJOR, OCCL_VERSION_MINOR};
    report.add(isSame ? Finding::Good : Finding::Broken, "Python package", found->second,
               isSame ? "" : kOneVersion);
  }
  constexpr Version kOldestOnHosts{2, 6}, kOldestOnDevices{2, 11}; // docs/torch.md
  const auto torch = packages.find("torch");
  if (torch == packages.end())
    return report.add(Finding::Good, "PyTorch", "python3 has none");
  const Version version = versionOf(torch->second);
  if (version < kOldestOnHosts)
    report.add(Finding::Limited, "PyTorch", torch->second,
               "OCCL's backend is for PyTorch 2.6 or later, on GPUs 2.11 or later");
  else if (version < kOldestOnDevices)
    report.add(Finding::Good, "PyTorch",
               torch->second + ", for OCCL's backend on CPUs; on GPUs it needs 2.11");
  else
    report.add(Finding::Good, "PyTorch", torch->second);
}

/// Another one than OCCL's, to which goes what OCCL leaves to it.
void checkNccl(Report &report, const std::map<std::string, std::string> &packages) {
  constexpr int kOldest = 21400; // as ncclGetVersion has 2.14.0; docs/nccl.md
  const std::string own = pathOfNccl();
  for (const auto &[name, version] : packages)
    if (name.starts_with("nvidia-nccl"))
      report.add(Finding::Good, "another NCCL", version + ", Python package " + name);
  const std::string given = setting("OCCL_NCCL_FALLBACK_LIBRARY");
  const LoadedLibrary library(given.empty() ? "libnccl.so.2" : given);
  if (!library && !given.empty())
    return report.add(Finding::Limited, "another NCCL", library.problem(),
                      "OCCL_NCCL_FALLBACK_LIBRARY names it: mend or unset that");
  const std::string path = library ? library.pathOf("ncclGetVersion") : "";
  if (path.empty() || (!own.empty() && areSameFile(path, own)))
    return;
  int code = 0;
  const auto ask = reinterpret_cast<int (*)(int *)>(library.symbol("ncclGetVersion"));
  if (!ask || ask(&code) != 0)
    return report.add(Finding::Limited, "another NCCL", path + " does not say its version");
  const std::string state =
      fmt::format("{}.{}.{}, {}", code / 10000, code % 10000 / 100, code % 100, path);
  report.add(code < kOldest ? Finding::Limited : Finding::Good, "another NCCL", state,
             code < kOldest ? "OCCL leaves communicators to NCCL 2.14 or later" : "");
}

} // namespace

LoadedLibrary::LoadedLibrary(const std::string &name)
    : handle(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (const char *problem = handle ? nullptr : dlerror())
    why = problem;
}

LoadedLibrary::~LoadedLibrary() {
  if (handle)
    dlclose(handle);
}

void *LoadedLibrary::symbol(const char *name) const {
  return handle ? dlsym(handle, name) : nullptr;
}

std::string LoadedLibrary::pathOf(const char *function) const {
  Dl_info found = {};
  void *const address = symbol(function);
  return address && dladdr(address, &found) != 0 && found.dli_fname ? found.dli_fname : "";
}

std::optional<std::string> versionInHeader(const std::string &path) {
  std::ifstream file(path);
  std::optional<unsigned> major, minor;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string directive, name;
    unsigned number = 0;
    if (!(words >> directive >> name >> number) || directive != "#define")
      continue;
    if (name.ends_with("_VERSION_MAJOR"))
      major = number;
    else if (name.ends_with("_VERSION_MINOR"))
      minor = number;
  }
  if (!major || !minor)
    return std::nullopt;
  return fmt::format("{}.{}", *major, *minor);
}

Version versionOf(const std::string &text) {
  Version version;
  if (std::sscanf(text.c_str(), "%u.%u", &version.major, &version.minor) < 1)
    return {};
  return version;
}

void checkVersions(Report &report) {
  checkLibrary(report);
  checkHeader(report);
  const std::map<std::string, std::string> packages = pythonPackages();
  checkPython(report, packages);
  checkNccl(report, packages);
}

} // namespace occl::driver
