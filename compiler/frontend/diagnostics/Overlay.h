// Texts that take the place of files: what an editor has not saved.
#pragma once

#include <map>
#include <string>

namespace occl::frontend {

/// By path; the paths of one file through links are the same. Not thread-safe.
class Overlay {
public:
  /// From now on the file, which need not exist on disk, has this text.
  void set(const std::string &path, std::string text);
  /// From now on it is what is on disk.
  void erase(const std::string &path);
  /// Null for what is on disk; valid until the next change of the same file.
  const std::string *find(const std::string &path) const;

private:
  std::map<std::string, std::string> texts; // by fileIdentity()
};

/// One path for all that lead to the same file, which need not exist.
std::string fileIdentity(const std::string &path);

} // namespace occl::frontend
