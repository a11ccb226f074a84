#include "compiler/diagnostics/PlanReport.h"

#include <charconv>
#include <filesystem>
#include <string_view>

namespace occl::diagnostics {

/// The source line of an instruction; a plan that is wrong may also name one that does not exist.
static std::optional<Range> rangeOf(const plan::Plan &plan, uint32_t location) {
  if (location >= plan.locations.size() || plan.locations[location].file >= plan.files.size())
    return std::nullopt;
  const plan::Location &place = plan.locations[location];
  return Range{plan.files[place.file], place.line, place.column, place.line, place.column};
}

static std::string pathOf(const plan::Place &place) {
  return "ranks[" + std::to_string(place.rank) + "].threadBlocks[" +
         std::to_string(place.threadBlock) + "][" + std::to_string(place.instruction) + "]";
}

Report reportOf(const plan::Plan &plan, const plan::VerifyError &error, const std::string &path) {
  // The source line if there is one: the plan is made from it, and that is where people look.
  Report report;
  report.code = nameOf(error.code);
  report.message = error.message;
  report.range = rangeOf(plan, error.location);
  if (!report.range)
    report.range = Range{.file = path};
  // Without a source line, the file as a whole.
  if (error.place)
    report.context = {{"rank", error.place->rank},
                      {"threadBlock", error.place->threadBlock},
                      {"instruction", error.place->instruction}};
  if (error.mode)
    // Notes in the order of reading: when it fails, then the witness.
    report.notes.push_back({std::nullopt, *error.mode == plan::AliasMode::InPlace
                                              ? "when called in place"
                                              : "when called out of place"});
  for (const plan::Note &note : error.witness)
    report.notes.push_back({rangeOf(plan, note.location), note.text});
  return report;
}

/// Sources are named as seen from where the one that was compiled lies; plans often lie beside it.
static std::optional<Range> besidePlan(std::optional<Range> source, const std::string &path,
                                       SourceText &files) {
  if (!source)
    return source;
  std::string beside = (std::filesystem::path(path).parent_path() / source->file).string();
  if (files.line(beside, source->line))
    source->file = beside;
  return files.withEnd(*source);
}

Report reportInFile(const plan::Plan &plan, const plan::VerifyError &error, const std::string &path,
                    SourceText &files) {
  // In a plan file, places of instructions are better known than source lines, which may be
  // elsewhere.
  Report report = reportOf(plan, error, path);
  size_t first = report.notes.size() - error.witness.size();
  // The witness's notes are the last ones.
  for (size_t i = 0; i < error.witness.size(); ++i)
    if (const std::optional<plan::Place> &place = error.witness[i].place)
      report.notes[first + i].range = files.jsonPlace(path, pathOf(*place));
  // The instruction at fault, or the field; a cycle of waits has no single place.
  std::string at = error.place ? pathOf(*error.place) : error.path;
  std::optional<Range> inFile;
  if (!at.empty())
    inFile = files.jsonPlace(path, at);
  else if (!error.witness.empty())
    inFile = report.notes[first].range; // of a cycle, any place will do
  report.range = inFile.value_or(Range{.file = path});
  // The source line is a note then.
  if (auto source = besidePlan(rangeOf(plan, error.location), path, files))
    report.notes.push_back({source, "it comes from here"});
  return report;
}

/// Takes "prefix<text>: " off `message`.
static std::optional<std::string_view> takePlace(std::string_view &message,
                                                 std::string_view prefix) {
  size_t end = message.find(": ");
  if (!message.starts_with(prefix) || end == std::string_view::npos)
    return std::nullopt;
  std::string_view place = message.substr(prefix.size(), end - prefix.size());
  message.remove_prefix(end + 2);
  return place;
}

/// A key that should not be there: beside the ones that should.
static std::string unknownKey(std::string_view message) {
  constexpr std::string_view kBegin = "unknown key '";
  if (!message.starts_with(kBegin))
    return "";
  message.remove_prefix(kBegin.size());
  return "." + std::string(message.substr(0, message.find('\'')));
}

Report reportOfReading(const std::string &message, const std::string &path, SourceText &files) {
  Report report;
  std::string_view text = message;
  // " [E352]" at the end of the message is its code.
  if (text.size() > 7 && text.ends_with("]") && text.substr(text.size() - 7).starts_with(" [E")) {
    report.code = text.substr(text.size() - 5, 4);
    text.remove_suffix(7);
  }
  if (text.starts_with(path + ": "))
    text.remove_prefix(path.size() + 2);
  report.message = text;
  report.range = Range{.file = path};
  // The reader's messages begin with a place: a path into the JSON, or a byte of the CBOR or of the
  // text.
  if (auto place = takePlace(text, "at ")) {
    std::string at = *place == "the top" ? "" : std::string(*place);
    if (auto range = files.jsonPlace(path, at + unknownKey(text)))
      report.range = *range;
  } else if (auto byte = takePlace(text, "byte ")) {
    size_t offset = 0;
    std::from_chars(byte->data(), byte->data() + byte->size(), offset);
    // Only of a text a byte leads to a line; of CBOR there is none to show.
    bool isText = report.code == "E352";
    if (isText && offset > 0)
      report.range = files.byteAt(path, offset - 1).value_or(*report.range);
  }
  return report;
}

Report forPeople(Report report, const plan::VerifyResult &result) {
  std::string text = result.text();
  text.resize(text.find(" [" + report.code + "]"));
  report.message = text;
  if (result.error->mode)
    report.notes.erase(report.notes.begin());
  return report;
}

} // namespace occl::diagnostics
