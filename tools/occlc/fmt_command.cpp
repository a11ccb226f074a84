#include "tools/occlc/fmt_command.h"

#include "compiler/driver/Printing.h"
#include "compiler/format/Formatter.h"
#include "tools/occlc/output.h"

#include <fstream>
#include <iostream>
#include <iterator>

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

/// Writes beside the file and renames, so that a full disk loses nothing.
bool replaceFile(const std::string &path, const std::string &text) {
  std::string draft = path + ".occlc-fmt";
  std::ofstream out(draft, std::ios::binary);
  out << text;
  out.close();
  if (out && std::rename(draft.c_str(), path.c_str()) == 0)
    return true;
  std::remove(draft.c_str());
  failToWrite(path);
  return false;
}

int formatFile(const std::string &path, const FmtCommand &command) {
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
  if (command.check) {
    if (!isSame)
      fail("'" + path + "' is not formatted; run occlc fmt -i " + path + " [E028]");
    return isSame ? 0 : 1;
  }
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
