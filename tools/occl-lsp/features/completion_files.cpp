#include "tools/occl-lsp/features/completion_files.h"

#include <filesystem>
#include <set>

namespace occl::lsp {

namespace fs = std::filesystem;

std::vector<std::string> filesToImport(const std::string &path, const std::string &written,
                                       const std::vector<std::string> &importPaths) {
  // A folder may be very large, and completion is asked for with each letter.
  constexpr size_t kMostFiles = 500;
  // What is written so far may lead into a folder; editors filter by the rest.
  std::string folder = written.substr(0, written.rfind('/') + 1);
  // Beside the file first, then the import paths, as the frontend looks for them.
  std::vector<fs::path> roots{fs::path(path).parent_path()};
  roots.insert(roots.end(), importPaths.begin(), importPaths.end());
  // Sorted, and each once: a file can be found through several roots.
  std::set<std::string> names;
  for (const fs::path &root : roots) {
    std::error_code error;
    // Errors end the loop: a folder that cannot be read offers nothing.
    fs::directory_iterator entry(root / folder, error), end;
    while (!error && entry != end && names.size() < kMostFiles) {
      std::error_code unknown;
      std::string name = entry->path().filename().string();
      // Hidden files, and the file itself, which cannot import itself.
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
