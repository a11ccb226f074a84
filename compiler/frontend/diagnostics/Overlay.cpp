#include "compiler/frontend/diagnostics/Overlay.h"

#include <filesystem>

namespace occl::frontend {

std::string fileIdentity(const std::string &path) {
  std::error_code error;
  std::filesystem::path canonical = std::filesystem::weakly_canonical(path, error);
  return error ? path : canonical.string();
}

void Overlay::set(const std::string &path, std::string text) {
  texts[fileIdentity(path)] = std::move(text);
}

void Overlay::erase(const std::string &path) { texts.erase(fileIdentity(path)); }

const std::string *Overlay::find(const std::string &path) const {
  if (texts.empty())
    return nullptr;
  auto entry = texts.find(fileIdentity(path));
  return entry == texts.end() ? nullptr : &entry->second;
}

} // namespace occl::frontend
