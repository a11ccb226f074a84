// A stream of XML elements with their places: what importers of XML have in common. Knows nothing
// of any schema. Bounded against hostile files: no document types, so no entities of a file's own;
// nesting, attributes and the size of a file are limited, and nothing is kept of what was read.
#pragma once

#include "compiler/frontend/diagnostics/Diagnostics.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace occl::interchange {

/// Larger files are refused. A step of 130 bytes makes this a million steps.
inline constexpr uint64_t kMaxXmlBytes = 128u << 20;
inline constexpr unsigned kMaxXmlDepth = 16;
inline constexpr unsigned kMaxXmlAttributes = 64; // of an element

struct XmlAttribute {
  std::string_view name, value;
};

/// Receives the elements of a file in order. Views are valid during the call only.
class XmlHandler {
public:
  virtual ~XmlHandler() = default;
  /// An element starts; its '<' is byte `offset` of the file.
  virtual void open(std::string_view name, std::span<const XmlAttribute> attributes,
                    uint32_t offset) = 0;
  virtual void close() = 0;
};

/// Reads a text file of at most kMaxXmlBytes; nullopt with an error in `diagnostics` if that fails.
/// The text is UTF-8 then: ISO-8859-1, if an XML declaration says so, is rewritten; other encodings
/// are refused, unless all characters are ASCII.
std::optional<frontend::FileId> addImportFile(frontend::SourceManager &sources,
                                              const std::string &path,
                                              frontend::DiagnosticEngine &diagnostics);

/// Hands all elements to `handler`, until an error, which is reported. True if there was none.
/// The handler's own errors do not stop the reading, unless no more would be kept.
bool readXml(const frontend::SourceManager &sources, frontend::FileId file, XmlHandler &handler,
             frontend::DiagnosticEngine &diagnostics);

/// "<name" of the element that starts at `offset`.
frontend::SourceRange elementRange(const frontend::SourceManager &sources, frontend::FileId file,
                                   uint32_t offset);

/// name="value" in the element that starts at `offset`; elementRange if it has no such attribute.
frontend::SourceRange attributeRange(const frontend::SourceManager &sources, frontend::FileId file,
                                     uint32_t offset, std::string_view name);

} // namespace occl::interchange
