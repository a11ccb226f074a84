#include "compiler/diagnostics/PlanReport.h"

namespace occl::diagnostics {

/// The source line of an instruction; a plan that is wrong may also name one that does not exist.
static std::optional<Range> rangeOf(const plan::Plan &plan, uint32_t location) {
  if (location >= plan.locations.size() || plan.locations[location].file >= plan.files.size())
    return std::nullopt;
  const plan::Location &place = plan.locations[location];
  return Range{plan.files[place.file], place.line, place.column, place.line, place.column};
}

Report reportOf(const plan::Plan &plan, const plan::VerifyError &error, const std::string &path) {
  Report report;
  report.code = nameOf(error.code);
  report.message = error.message;
  report.range = rangeOf(plan, error.location);
  if (!report.range)
    report.range = Range{.file = path};
  if (error.place)
    report.context = {{"rank", error.place->rank},
                      {"threadBlock", error.place->threadBlock},
                      {"instruction", error.place->instruction}};
  if (error.mode)
    report.notes.push_back({std::nullopt, *error.mode == plan::AliasMode::InPlace
                                              ? "when called in place"
                                              : "when called out of place"});
  for (const plan::Note &note : error.witness)
    report.notes.push_back({rangeOf(plan, note.location), note.text});
  return report;
}

} // namespace occl::diagnostics
