#include "tools/occl-lsp/workspace/observations.h"

#include <algorithm>

namespace occl::lsp {

void Observations::add(Seen &seen, std::string value) {
  if (std::find(seen.values.begin(), seen.values.end(), value) != seen.values.end())
    return;
  if (seen.values.size() < kMostValues)
    seen.values.push_back(std::move(value));
  else
    seen.isMore = true;
}

void Observations::onInt(frontend::SourceRange name, int64_t value) {
  Seen &seen = all[keyOf(name)];
  bool isKnown = seen.isMore || (!seen.values.empty() && seen.last == value);
  seen.last = value;
  if (!isKnown)
    add(seen, std::to_string(value));
}

void Observations::onBool(frontend::SourceRange name, bool value) {
  add(all[keyOf(name)], value ? "true" : "false");
}

void Observations::onInts(frontend::SourceRange name, std::span<const int64_t> values) {
  constexpr size_t kMostShown = 16;
  // A place that is executed thousands of times keeps its first values; the rest is "...".
  Seen &seen = all[keyOf(name)];
  if (seen.isMore)
    return;
  std::string text = "[";
  for (size_t i = 0; i < std::min(values.size(), kMostShown); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  add(seen, text + (values.size() > kMostShown ? ", ...]" : "]"));
}

void Observations::onPlace(frontend::SourceRange place, const frontend::Layout &layout,
                           const frontend::Place &where) {
  Seen &seen = all[keyOf(place)];
  if (!seen.isMore)
    add(seen, layout.describe(where));
}

std::string Observations::at(frontend::SourceRange place) const {
  auto found = all.find(keyOf(place));
  if (found == all.end())
    return "";
  std::string text;
  for (const std::string &value : found->second.values)
    text += (text.empty() ? "" : ", ") + value;
  return found->second.isMore ? text + ", ..." : text;
}

} // namespace occl::lsp
