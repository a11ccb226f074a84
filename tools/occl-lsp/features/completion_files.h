// Files that an import can name.
#pragma once

#include <string>
#include <vector>

namespace occl::lsp {

/// Names of files and, with a slash behind, of folders that continue `written`, the part of an
/// import's path that is there: beside `path`, and in the import paths. In order, without
/// repetition; a bounded number of them.
std::vector<std::string> filesToImport(const std::string &path, const std::string &written,
                                       const std::vector<std::string> &importPaths);

} // namespace occl::lsp
