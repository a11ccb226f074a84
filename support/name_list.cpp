#include "support/name_list.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace occl {

NameList::NameList(std::string list) {
  isExclusion = list.starts_with('^');
  if (isExclusion)
    list.erase(0, 1);
  isWhole = list.starts_with('=');
  if (isWhole)
    list.erase(0, 1);
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    Entry entry{list.substr(begin, end - begin), std::nullopt};
    begin = end + 1;
    if (const size_t colon = entry.name.find(':'); colon != std::string::npos) {
      // What is no number stays 0, so that the entry matches nothing rather than all ports.
      unsigned port = 0; // which no device has
      std::from_chars(entry.name.data() + colon + 1, entry.name.data() + entry.name.size(), port);
      entry.port = port;
      entry.name.resize(colon);
    }
    if (!entry.name.empty())
      entries.push_back(std::move(entry));
  }
}

bool NameList::takes(std::string_view name, std::optional<unsigned> port) const {
  const bool isNamed = std::ranges::any_of(entries, [&](const Entry &entry) {
    return (isWhole ? name == entry.name : name.starts_with(entry.name)) &&
           (!entry.port || !port || entry.port == port);
  });
  return isNamed != isExclusion;
}

} // namespace occl
