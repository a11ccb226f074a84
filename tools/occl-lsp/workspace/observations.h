// What names and places were while an algorithm ran, for people.
#pragma once

#include "compiler/frontend/memory/Observer.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace occl::lsp {

/// Keeps the first few values of each name and place, so that memory is bounded by the program's
/// text. Not thread-safe.
class Observations : public frontend::Observer {
public:
  void onInt(frontend::SourceRange name, int64_t value) override;
  void onBool(frontend::SourceRange name, bool value) override;
  void onInts(frontend::SourceRange name, std::span<const int64_t> values) override;
  void onPlace(frontend::SourceRange place, const frontend::Layout &layout,
               const frontend::Place &where) override;

  /// The values at this place, which begins and ends there, in the order of their first occurrence:
  /// "0, 1, 2, ..."; empty if it was never evaluated.
  std::string at(frontend::SourceRange place) const;

private:
  static constexpr size_t kMostValues = 6;

  struct Seen {
    std::vector<std::string> values; // no two the same
    int64_t last = 0;                // of an integer: most are not new
    bool isMore = false;
  };
  using Key = std::pair<std::pair<frontend::FileId, uint32_t>, uint32_t>;
  static Key keyOf(frontend::SourceRange place) { return {{place.file, place.begin}, place.end}; }
  static void add(Seen &seen, std::string value);

  std::map<Key, Seen> all;
};

} // namespace occl::lsp
