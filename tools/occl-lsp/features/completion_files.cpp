#include "tools/occl-lsp/features/completion_files.h"

#include <filesystem>
#include <set>

namespace occl::lsp {

namespace fs = std::filesystem;

std::vector<std::string> filesToImport(const std::string &path, const std::string &written,
                                       const std::vector<std::string> &importPaths) {
  constexpr size_t kMostFiles = 500;
  std::string folder = written.substr(0, written.rfind('/') + 1);
  std::vector<fs::path> roots{fs::path(path).parent_path()};
  roots.insert(roots.end(), importPaths.begin(), importPaths.end());
  std::set<std::string> names;
  for (const fs::path &root : roots) {
    std::error_code error;
    fs::directory_iterator entry(root / folder, error), end;
    while (!error && entry != end && names.size() < kMostFiles) {
      std::error_code unknown;
      std::string name = entry->path().filename().string();
      bool isHidden = name.starts_with('.') || entry->path() == fs::path(path);
      if (!isHidden && entry->is_directory(unknown))
        names.insert(name + "/");
      else if (!isHidden && name.ends_with(".coll"))
        names.insert(name);
      entry.increment(error);
    }
  }
  return {names.begin(), names.end()};
}

} // namespace occl::lsp
