#include "support/suggestion.h"

#include <algorithm>

namespace occl::support {
namespace {

/// Names longer than this get no suggestion: the distance takes quadratic time.
constexpr size_t kMaxLength = 64;

size_t editDistance(std::string_view a, std::string_view b) {
  // Wagner and Fischer's distance with one row of the table: row[j] is that of the first i
  // characters of `a` and the first j of `b`, `diagonal` what stood to the upper left of it.
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

} // namespace

std::string suggest(std::string_view name, const std::vector<std::string_view> &candidates) {
  std::string best;
  if (name.size() > kMaxLength)
    return best;
  // A third of the letters may be wrong: with more, short names would match anything.
  size_t allowed = (name.size() + 2) / 3;
  for (std::string_view candidate : candidates) {
    // The lengths differ by more than any number of edits allowed, so the table need not be filled.
    if (candidate.size() > name.size() + allowed || candidate.size() + allowed < name.size())
      continue;
    size_t distance = editDistance(name, candidate);
    // The name itself is no suggestion, nor is one that shares no letter with what was written.
    if (distance > allowed || distance == 0 || distance >= candidate.size())
      continue;
    // Only strictly nearer ones replace it, so the first of several at the same distance stays.
    best = candidate;
    allowed = distance - 1;
    if (allowed == 0)
      break;
  }
  return best;
}

std::string didYouMean(const std::string &suggestion) {
  return suggestion.empty() ? "" : "; did you mean '" + suggestion + "'?";
}

} // namespace occl::support
