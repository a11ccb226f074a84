#include "tools/occlc/fmt_command.h"

#include "compiler/driver/Printing.h"
#include "compiler/format/Formatter.h"
#include "tools/occlc/output.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <system_error>

namespace occl::tools {

namespace {

std::optional<frontend::FileId> readSource(frontend::SourceManager &sources,
                                           const std::string &path) {
  std::string error;
  std::optional<frontend::FileId> file;
  if (path == "-")
    file = sources.addText("<standard input>",
                           std::string(std::istreambuf_iterator<char>(std::cin), {}));
  else
    file = sources.addFile(path, error);
  if (!file)
    fail("cannot read '" + path + "': " + error + " [E001]");
  return file;
}

/// The byte order mark with which the file begins, which is no part of its text; or nothing.
std::string markOf(const std::string &path) {
  const std::string mark = "\xef\xbb\xbf";
  std::string begin(mark.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  return file.read(begin.data(), static_cast<std::streamsize>(begin.size())) && begin == mark ? mark
                                                                                              : "";
}

namespace fs = std::filesystem;

/// Writes beside the file and renames, so that a full disk loses nothing.
bool replaceContent(const fs::path &target, const std::string &content) {
  // In the same folder, since only there a rename is atomic.
  const fs::path draft = target.string() + ".occlc-fmt";
  std::ofstream out(draft, std::ios::binary);
  out << content;
  out.close();
  std::error_code error;
  // The new file has the old one's permissions.
  if (out)
    fs::permissions(draft, fs::status(target, error).permissions(), error);
  if (out && !error)
    fs::rename(draft, target, error);
  if (out && !error)
    return true;
  // Whatever has failed, the old file is still there.
  fs::remove(draft, error);
  return false;
}

/// What the file is beside its text stays: its mode, links to it, a mark at its begin.
bool replaceFile(const std::string &path, const std::string &text) {
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  const bool isDone = !error && replaceContent(target, markOf(path) + text);
  if (!isDone)
    failToWrite(path);
  return isDone;
}

int formatFile(const std::string &path, const FmtCommand &command) {
  // Each file by itself: an error in one does not keep the others from being formatted.
  frontend::SourceManager sources;
  std::optional<frontend::FileId> file = readSource(sources, path);
  if (!file)
    return 1;
  frontend::DiagnosticEngine diagnostics(sources);
  std::optional<std::string> text = format::format(sources, *file, diagnostics);
  if (!text) {
    driver::print(diagnostics, sources, diagnosticFormat());
    return 1;
  }
  bool isSame = *text == sources.text(*file);
  // With --check nothing is written.
  if (command.check) {
    if (!isSame)
      fail("'" + path + "' is not formatted; run occlc fmt -i " + path + " [E028]");
    return isSame ? 0 : 1;
  }
  // Without a change the file keeps its time stamp, so that nothing is built again.
  if (command.inPlace && path != "-")
    return isSame || replaceFile(path, *text) ? 0 : 1;
  std::cout << *text;
  return flushOutput();
}

} // namespace

int fmt(const FmtCommand &command) {
  int status = 0;
  for (const std::string &path :
       command.paths.empty() ? std::vector<std::string>{"-"} : command.paths)
    status |= formatFile(path, command);
  return status;
}

} // namespace occl::tools
