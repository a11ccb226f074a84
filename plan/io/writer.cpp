#include "plan/io/writer.h"

#include "plan/io/schema_writer.h"
#include "support/writable.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

namespace occl::plan {

namespace {

/// Collects bytes and hands them to a stream in large pieces.
class Buffer {
public:
  explicit Buffer(std::ostream &stream) : stream(stream), bytes(kSize) {}

  void put(char byte) {
    if (used == kSize)
      flush();
    bytes[used++] = byte;
  }
  void put(std::string_view text) {
    // What does not fit at all goes past the buffer: copying it in pieces would gain nothing.
    if (text.size() > kSize - used) {
      flush();
      if (text.size() > kSize) {
        stream.write(text.data(), static_cast<std::streamsize>(text.size()));
        return;
      }
    }
    text.copy(bytes.data() + used, text.size());
    used += text.size();
  }
  void flush() {
    stream.write(bytes.data(), static_cast<std::streamsize>(used));
    used = 0;
  }

private:
  static constexpr size_t kSize = 1 << 16;
  std::ostream &stream;
  std::vector<char> bytes;
  size_t used = 0;
};

class JsonWriter {
public:
  explicit JsonWriter(Buffer &out) : out(out) {}

  void beginObject(size_t size, Layout layout) { begin('{', '}', size, layout); }
  void beginArray(size_t size, Layout layout) { begin('[', ']', size, layout); }
  void end() {
    Level level = levels.back();
    levels.pop_back();
    // The closing bracket of an empty list stands behind the opening one; nothing was separated in
    // it.
    if (level.layout == Layout::Lines && !level.isEmpty)
      newLine();
    out.put(level.close);
    if (levels.empty())
      out.put('\n');
  }

  void key(std::string_view name) {
    separate();
    quote(name);
    out.put(": ");
    afterKey = true;
  }
  void value(std::string_view text) {
    separate();
    quote(text);
  }
  void value(bool truth) {
    separate();
    out.put(truth ? std::string_view("true") : "false");
  }
  void value(uint64_t number) { writeNumber(number); }
  void value(int64_t number) { writeNumber(number); }

private:
  struct Level {
    char close;
    Layout layout;
    bool isEmpty;
  };

  void begin(char open, char close, size_t, Layout layout) {
    separate();
    out.put(open);
    levels.push_back({close, layout, true});
  }

  /// What stands between the previous key or element and the next one.
  void separate() {
    // A value behind its key is no further member, and the plan itself has nothing before it.
    if (std::exchange(afterKey, false) || levels.empty())
      return;
    Level &level = levels.back();
    bool isFirst = std::exchange(level.isEmpty, false);
    if (!isFirst)
      out.put(',');
    if (level.layout == Layout::Lines)
      newLine();
    else if (!isFirst)
      out.put(' ');
  }

  void newLine() {
    out.put('\n');
    for (const Level &level : levels)
      if (level.layout == Layout::Lines)
        out.put(' ');
  }

  void quote(std::string_view text) {
    // Almost all texts of a plan are plain ASCII: only the others take the way through the JSON
    // library, with '?' for what is not UTF-8.
    auto isPlain = [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; };
    if (std::all_of(text.begin(), text.end(), isPlain)) {
      out.put('"');
      out.put(text);
      out.put('"');
      return;
    }
    using nlohmann::json;
    out.put(json(text).dump(-1, ' ', true, json::error_handler_t::replace));
  }

  template <typename Number> void writeNumber(Number number) {
    separate();
    char digits[24];
    char *end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    out.put(std::string_view(digits, end));
  }

  Buffer &out;
  std::vector<Level> levels;
  bool afterKey = false;
};

class CborWriter {
public:
  explicit CborWriter(Buffer &out) : out(out) {}

  void beginObject(size_t size, Layout) { head(5, size); }
  void beginArray(size_t size, Layout) { head(4, size); }
  void end() {}
  void key(std::string_view name) { value(name); }
  void value(std::string_view text) {
    head(3, text.size());
    out.put(text);
  }
  void value(bool truth) { out.put(static_cast<char>(truth ? 0xf5 : 0xf4)); }
  void value(uint64_t number) { head(0, number); }
  void value(int64_t number) {
    if (number < 0)
      head(1, ~static_cast<uint64_t>(number));
    else
      head(0, static_cast<uint64_t>(number));
  }

private:
  /// A data item's first bytes: major type and argument, in the shortest form.
  void head(unsigned majorType, uint64_t argument) {
    // The shortest form is the canonical one (RFC 8949, 4.2.1): without it, the same plan could
    // have several encodings, and hashes of files would differ.
    unsigned first = majorType << 5;
    unsigned width = argument < 24         ? 0
                     : argument <= 0xff    ? 1
                     : argument <= 0xffff  ? 2
                     : argument >> 32 == 0 ? 4
                                           : 8;
    if (width == 0) {
      out.put(static_cast<char>(first | argument));
      return;
    }
    // Codes 24 to 27 announce 1, 2, 4 and 8 bytes; the highest byte comes first.
    unsigned code = width == 1 ? 24 : width == 2 ? 25 : width == 4 ? 26 : 27;
    out.put(static_cast<char>(first | code));
    for (unsigned byte = width; byte-- > 0;)
      out.put(static_cast<char>(argument >> (8 * byte)));
  }

  Buffer &out;
};

template <typename Format> void emit(const Plan &plan, std::ostream &stream) {
  Buffer buffer(stream);
  Format writer(buffer);
  SchemaWriter<Format>(plan, writer).run();
  buffer.flush();
}

} // namespace

support::Status writePlan(const Plan &plan, Format format, std::ostream &out) {
  if (format == Format::Json)
    emit<JsonWriter>(plan, out);
  else
    emit<CborWriter>(plan, out);
  if (!out)
    return support::Status::error("cannot write plan '" + plan.name + "': the stream failed");
  return {};
}

StagedPlanFile::StagedPlanFile(std::string path) : path(std::move(path)) {
  std::error_code failure;
  // Links are followed, so that the file behind one is replaced and the link stays; pipes and
  // devices are written to as they are, for there is nothing to replace.
  std::filesystem::file_status old = std::filesystem::status(this->path, failure);
  const bool isThere = std::filesystem::exists(old);
  isSpecial = isThere && !std::filesystem::is_regular_file(old);
  if (isThere && !isSpecial)
    place = std::filesystem::canonical(this->path, failure).string();
  if (place.empty()) // a link may lead to what is to be made
    place = linkTarget(this->path);
  // In the same folder as the plan, since only within a file system a rename is atomic: readers see
  // the old plan or the new one.
  draft = isSpecial ? place : place + ".partial";
}

StagedPlanFile::~StagedPlanFile() {
  std::error_code failure;
  if (isWritten && !isSpecial)
    std::filesystem::remove(draft, failure);
}

void StagedPlanFile::write(const Plan &plan) {
  if (!isSpecial)
    result = writeDraft(plan);
}

support::Status StagedPlanFile::writeDraft(const Plan &plan) {
  std::ofstream file(draft, std::ios::binary | std::ios::trunc);
  if (!file) {
    const std::string why = whyNotWritable(path);
    return support::Status::error("cannot open '" + path + "' for writing: " +
                                  (why.empty() ? "check folder and permissions" : why));
  }
  // From here on the destructor removes the draft.
  isWritten = true;
  Format format = path.ends_with(".cbor") ? Format::Cbor : Format::Json;
  support::Status status = writePlan(plan, format, file);
  // Errors of the last buffer show only when the file is closed.
  file.close();
  return status && file ? support::Status() : cannotWrite();
}

support::Status StagedPlanFile::publish(const Plan &plan) {
  if (isSpecial)
    return writeDraft(plan);
  if (!result)
    return result;
  // What replaces a file keeps who may read it.
  std::error_code failure;
  if (const auto old = std::filesystem::status(place, failure); std::filesystem::exists(old))
    std::filesystem::permissions(draft, old.permissions(), failure);
  std::filesystem::rename(draft, place, failure);
  // After the rename there is no draft to remove.
  isWritten = static_cast<bool>(failure);
  return failure ? cannotWrite() : support::Status();
}

support::Status StagedPlanFile::cannotWrite() const {
  return support::Status::error("cannot write '" + path + "': is the disk full?");
}

support::Status writePlanFile(const Plan &plan, const std::string &path) {
  StagedPlanFile file(path);
  file.write(plan);
  return file.publish(plan);
}

std::string encodePlan(const Plan &plan, Format format) {
  std::ostringstream out;
  support::Status status = writePlan(plan, format, out);
  return status ? std::move(out).str() : std::string();
}

} // namespace occl::plan
