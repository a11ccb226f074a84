#include "compiler/interchange/msccl/XmlReader.h"

#include <expat.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

namespace occl::interchange {

using namespace frontend;

namespace {

class Reader {
public:
  Reader(const SourceManager &sources, FileId file, XmlHandler &handler,
         DiagnosticEngine &diagnostics)
      : file(file), text(sources.text(file)), handler(handler), diagnostics(diagnostics),
        parser(XML_ParserCreate("UTF-8"), &XML_ParserFree) {
    // Expat's callbacks get this object back, and its members do the work.
    XML_SetUserData(parser.get(), this);
    XML_SetElementHandler(
        parser.get(),
        [](void *self, const char *name, const char **attributes) {
          static_cast<Reader *>(self)->open(name, attributes);
        },
        [](void *self, const char *) { static_cast<Reader *>(self)->close(); });
    // Document types are refused at once: entities could make a small file enormous.
    XML_SetStartDoctypeDeclHandler(
        parser.get(), [](void *self, const char *, const char *, const char *, int) {
          static_cast<Reader *>(self)->stop(DiagnosticCode::XmlDocumentType,
                                            "a document type is not allowed here: it could "
                                            "define entities that grow without bound");
        });
  }

  bool run() {
    // In pieces; the last one tells expat that the text has ended.
    constexpr size_t kPiece = 1u << 20; // expat takes lengths as int
    for (size_t begin = 0; !stopped; begin += kPiece) {
      size_t length = std::min(kPiece, text.size() - begin);
      bool isLast = begin + length == text.size();
      if (XML_Parse(parser.get(), text.data() + begin, static_cast<int>(length), isLast) !=
          XML_STATUS_OK)
        reportMalformed();
      if (isLast)
        break;
    }
    return !stopped;
  }

private:
  uint32_t position() const {
    auto index = XML_GetCurrentByteIndex(parser.get());
    return static_cast<uint32_t>(std::clamp<long>(index, 0, static_cast<long>(text.size())));
  }

  void stop(DiagnosticCode code, std::string message) {
    uint32_t at = position();
    diagnostics.error(code, {file, at, at + 1}, std::move(message));
    halt();
  }

  void halt() {
    stopped = true;
    XML_StopParser(parser.get(), XML_FALSE);
  }

  void reportMalformed() {
    if (stopped) // by halt()
      return;
    const char *reason = XML_ErrorString(XML_GetErrorCode(parser.get()));
    uint32_t at = position();
    diagnostics.error(DiagnosticCode::XmlMalformed, {file, at, at + 1},
                      std::string("this is not well-formed XML: ") + reason);
    stopped = true;
  }

  void open(const char *name, const char **pairs) {
    // After an error expat may still call for elements that it has read.
    if (stopped)
      return;
    attributes.clear();
    for (; *pairs; pairs += 2)
      attributes.push_back({pairs[0], pairs[1]});
    // Limits of the reader, so that handlers need none.
    if (++depth > kMaxXmlDepth)
      return stop(DiagnosticCode::ImportTooLarge,
                  "elements nest deeper than " + std::to_string(kMaxXmlDepth) + " levels");
    if (attributes.size() > kMaxXmlAttributes)
      return stop(DiagnosticCode::ImportTooLarge,
                  "an element has more than " + std::to_string(kMaxXmlAttributes) + " attributes");
    handler.open(name, attributes, position());
    // After many errors the rest of the file is not worth reading.
    if (diagnostics.isFull())
      halt();
  }

  void close() {
    if (stopped)
      return;
    --depth;
    handler.close();
  }

  FileId file;
  std::string_view text;
  XmlHandler &handler;
  DiagnosticEngine &diagnostics;
  std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser;
  std::vector<XmlAttribute> attributes;
  unsigned depth = 0;
  bool stopped = false;
};

bool isSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// What the XML declaration at the beginning says, in lower case; empty if there is none.
std::string declaredEncoding(std::string_view text) {
  // Only the first line can be a declaration, and it is ASCII in any encoding that this reads.
  constexpr std::string_view kBegin = "<?xml", kName = "encoding";
  std::string_view declaration = text.substr(0, text.find("?>"));
  size_t at = text.starts_with(kBegin) ? declaration.find(kName) : text.npos;
  if (at == text.npos)
    return "";
  std::string_view value = declaration.substr(at + kName.size());
  size_t open = value.find_first_of("\"'");
  if (open == value.npos)
    return "";
  value = value.substr(open + 1, value.find(value[open], open + 1) - open - 1);
  std::string lower(value);
  for (char &c : lower)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::string latin1ToUtf8(std::string_view text) {
  // Latin-1 is the first 256 code points.
  std::string result;
  result.reserve(text.size());
  for (unsigned char c : text) {
    if (c < 0x80) {
      result += static_cast<char>(c);
    } else {
      result += static_cast<char>(0xc0 | c >> 6);
      result += static_cast<char>(0x80 | (c & 0x3f));
    }
  }
  return result;
}

/// Makes the text UTF-8; says why that cannot be.
std::string toUtf8(std::string &text) {
  // Byte order marks of UTF-16.
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    return "it is UTF-16; write it as UTF-8 (iconv -f UTF-16 -t UTF-8)";
  // ASCII is valid in all of them, whatever it claims.
  bool isAscii = std::none_of(text.begin(), text.end(), [](char c) { return c & 0x80; });
  std::string encoding = isAscii ? "" : declaredEncoding(text);
  if (encoding == "iso-8859-1" || encoding == "latin1")
    text = latin1ToUtf8(text);
  else if (!encoding.empty() && encoding != "utf-8" && encoding != "us-ascii")
    return "it is encoded as '" + encoding + "'; write it as UTF-8 (iconv -f " + encoding +
           " -t UTF-8)";
  return "";
}

} // namespace

std::optional<FileId> addImportFile(SourceManager &sources, const std::string &path,
                                    DiagnosticEngine &diagnostics) {
  // In pieces with a limit: the size of a pipe is not known.
  std::ifstream stream(path, std::ios::binary);
  std::string text, reason;
  if (!stream)
    reason = std::strerror(errno);
  while (reason.empty() && stream) {
    constexpr size_t kPiece = 1u << 20;
    size_t before = text.size();
    text.resize(before + kPiece);
    stream.read(text.data() + before, kPiece);
    text.resize(before + static_cast<size_t>(stream.gcount()));
    if (text.size() > kMaxXmlBytes)
      reason = "it is larger than " + std::to_string(kMaxXmlBytes >> 20) + " MiB";
  }
  if (reason.empty() && stream.bad())
    reason = std::strerror(errno);
  if (reason.empty())
    // Everything after this reads UTF-8.
    reason = toUtf8(text);
  if (reason.empty())
    return sources.addText(path, std::move(text));
  diagnostics.error(DiagnosticCode::ImportUnreadable, {}, "cannot read '" + path + "': " + reason);
  return std::nullopt;
}

bool readXml(const SourceManager &sources, FileId file, XmlHandler &handler,
             DiagnosticEngine &diagnostics) {
  return Reader(sources, file, handler, diagnostics).run();
}

SourceRange elementRange(const SourceManager &sources, FileId file, uint32_t offset) {
  std::string_view text = sources.text(file);
  size_t end = std::min<size_t>(offset + 1, text.size());
  while (end < text.size() && !isSpace(text[end]) && text[end] != '>' && text[end] != '/')
    ++end;
  return {file, offset, static_cast<uint32_t>(end)};
}

SourceRange attributeRange(const SourceManager &sources, FileId file, uint32_t offset,
                           std::string_view name) {
  // Expat tells where an element begins, not where its attributes are: the tag is looked through
  // again, for an error message only.
  SourceRange element = elementRange(sources, file, offset);
  std::string_view text = sources.text(file);
  size_t at = element.end;
  auto skipSpace = [&] {
    while (at < text.size() && isSpace(text[at]))
      ++at;
  };
  while (at < text.size() && text[at] != '>') {
    skipSpace();
    size_t begin = at;
    while (at < text.size() && !isSpace(text[at]) && text[at] != '=' && text[at] != '>')
      ++at;
    // Whether this is the one; its value has to be skipped in any case, as it may contain anything.
    bool isIt = text.substr(begin, at - begin) == name;
    skipSpace();
    if (at >= text.size() || text[at] != '=')
      continue;
    ++at;
    skipSpace();
    size_t close = at < text.size() ? text.find(text[at], at + 1) : text.npos;
    if (close == text.npos)
      break;
    at = close + 1;
    if (isIt)
      return {file, static_cast<uint32_t>(begin), static_cast<uint32_t>(at)};
  }
  return element;
}

} // namespace occl::interchange
