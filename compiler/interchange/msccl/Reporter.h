// Errors and warnings of an importer, at elements and attributes of its file.
#pragma once

#include "compiler/interchange/msccl/XmlReader.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace occl::interchange {

/// Something odd that does not make the import wrong.
struct Warning {
  frontend::SourceRange place;
  std::string message; // ends in its code, as "[W200]"
};

class Reporter {
public:
  using Code = frontend::DiagnosticCode;

  Reporter(const frontend::SourceManager &sources, frontend::FileId file,
           frontend::DiagnosticEngine &diagnostics, std::vector<Warning> &warnings)
      : sources(sources), file(file), diagnostics(diagnostics), warnings(warnings) {}

  /// `offset` is that of the element, also below.
  frontend::Diagnostic &error(Code code, uint32_t offset, std::string message) {
    return diagnostics.error(code, elementRange(sources, file, offset), std::move(message));
  }
  frontend::Diagnostic &error(Code code, uint32_t offset, std::string_view attribute,
                              std::string message) {
    return diagnostics.error(code, attributeRange(sources, file, offset, attribute),
                             std::move(message));
  }
  frontend::SourceRange element(uint32_t offset) const {
    return elementRange(sources, file, offset);
  }
  /// Once for each message: what a generator writes at every step is said at the first.
  void warn(Code code, uint32_t offset, std::string_view attribute, std::string message) {
    message += std::string(" [") + frontend::codeOf(code) + "]";
    auto isSame = [&](const Warning &other) { return other.message == message; };
    if (warnings.size() < kMaxWarnings && std::none_of(warnings.begin(), warnings.end(), isSame))
      warnings.push_back({attributeRange(sources, file, offset, attribute), std::move(message)});
  }
  frontend::LineColumn place(uint32_t offset) const { return sources.lineColumn(file, offset); }
  std::string_view fileName() const { return sources.name(file); }
  bool hasErrors() const { return diagnostics.hasErrors(); }

private:
  static constexpr size_t kMaxWarnings = 20;

  const frontend::SourceManager &sources;
  frontend::FileId file;
  frontend::DiagnosticEngine &diagnostics;
  std::vector<Warning> &warnings;
};

} // namespace occl::interchange
