#include "compiler/diagnostics/Report.h"

#include <nlohmann/json.hpp>

namespace occl::diagnostics {

using Json = nlohmann::ordered_json;

static Json toJson(const Range &range) {
  Json json = {{"file", range.file}};
  if (range.line > 0)
    json.update({{"line", range.line},
                 {"column", range.column},
                 {"endLine", range.endLine},
                 {"endColumn", range.endColumn}});
  return json;
}

std::string toJson(const Report &report) {
  // The order of members is that of reading: what it is, then where, then notes. Empty ones are
  // left out.
  Json json = {{"severity", report.severity == Severity::Error ? "error" : "warning"}};
  if (!report.code.empty())
    json["code"] = report.code;
  json["message"] = report.message;
  if (report.range)
    json["range"] = toJson(*report.range);
  for (const auto &[key, value] : report.context)
    json[key] = value;
  for (const Note &note : report.notes) {
    Json entry = {{"message", note.message}};
    if (note.range)
      entry["range"] = toJson(*note.range);
    json["notes"].push_back(std::move(entry));
  }
  for (const FixIt &fixIt : report.fixIts)
    json["fixIts"].push_back({{"range", toJson(fixIt.range)}, {"text", fixIt.text}});
  // Names of files need not be UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace occl::diagnostics
