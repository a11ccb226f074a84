// Loads plans from files, and each version of a file once.
#include "runtime/loader/plan_loader.h"

#include "plan/io/reader.h"
#include "plan/model/hash.h"
#include "plan/verify/verifier.h"
#include "runtime/sync/mutex.h"

#include <sys/stat.h>

#include <cerrno>
#include <compare>
#include <map>
#include <mutex>
#include <optional>

namespace occl::loader {

namespace {

/// What changes when a file does.
struct FileVersion {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t seconds = 0, nanoseconds = 0;

  auto operator<=>(const FileVersion &) const = default;
};

/// Nothing if there is no such file; errno says why.
std::optional<FileVersion> versionOf(const std::string &path) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0)
    return {};
  return FileVersion{file.st_dev, file.st_ino, static_cast<uint64_t>(file.st_size),
                     file.st_mtim.tv_sec, file.st_mtim.tv_nsec};
}

/// Holds no plan alive. An entry's mutex is held while its file is loaded, so that threads that
/// want the same plan at the same time wait for the first instead of verifying it again.
struct Cache {
  struct Entry {
    Mutex mutex;
    std::weak_ptr<const LoadedPlan> plan;
  };

  std::shared_ptr<Entry> entryOf(const FileVersion &version) {
    std::lock_guard lock(mutex);
    // Entries of plans that nobody uses and nobody is loading.
    std::erase_if(entries, [](const auto &item) {
      return item.second.use_count() == 1 && item.second->plan.expired();
    });
    std::shared_ptr<Entry> &entry = entries[version];
    if (!entry)
      entry = std::make_shared<Entry>();
    return entry;
  }

private:
  Mutex mutex;
  std::map<FileVersion, std::shared_ptr<Entry>> entries;
};

Cache &cache() {
  static Cache instance;
  return instance;
}

StatusOr<LoadedPlanPtr> readAndVerify(const std::string &path) {
  auto plan = plan::readPlanFile(path);
  if (!plan.isOk())
    return Status(StatusCode::InvalidPlan, plan.message());
  return adoptPlan(std::move(*plan), path);
}

} // namespace

StatusOr<LoadedPlanPtr> loadPlan(const std::string &path) {
  std::optional<FileVersion> version = versionOf(path);
  if (!version)
    return systemError("plan file '" + path + "'", errno);
  std::shared_ptr<Cache::Entry> entry = cache().entryOf(*version);
  std::lock_guard lock(entry->mutex);
  if (LoadedPlanPtr plan = entry->plan.lock())
    return plan;
  StatusOr<LoadedPlanPtr> loaded = readAndVerify(path);
  // What was read is the version looked up only if the file is still that version.
  if (loaded.ok() && versionOf(path) == version)
    entry->plan = *loaded;
  return loaded;
}

StatusOr<LoadedPlanPtr> adoptPlan(plan::Plan plan, const std::string &origin) {
  plan::VerifyResult result = plan::verifyPlan(plan, {.findSmallestDepth = false});
  if (!result.isOk())
    return Status(StatusCode::InvalidPlan, origin + ": " + result.text());
  auto loaded = std::make_shared<LoadedPlan>();
  loaded->hash = plan::hashPlan(plan);
  loaded->plan = std::move(plan);
  return LoadedPlanPtr(std::move(loaded));
}

} // namespace occl::loader
