#include "compiler/frontend/sema/Names.h"

namespace occl::frontend {

Definition &NameTable::define(Definition definition) {
  Definition &kept = all.emplace_back(std::move(definition));
  names[beginOf(kept.range)] = {kept.range.end, &kept};
  return kept;
}

void NameTable::use(SourceRange place, SourceRange definition) {
  auto known = names.find(beginOf(definition));
  if (known != names.end())
    names[beginOf(place)] = {place.end, known->second.definition};
}

const Definition *NameTable::at(FileId file, uint32_t offset) const {
  auto next = names.upper_bound({file, offset});
  if (next == names.begin())
    return nullptr;
  const auto &[begin, entry] = *std::prev(next);
  return begin.first == file && offset <= entry.end ? entry.definition : nullptr;
}

std::vector<const Definition *> NameTable::visibleAt(FileId file, uint32_t offset) const {
  std::vector<const Definition *> found;
  for (const Definition &definition : all)
    if (definition.visible.file == file && definition.visible.begin <= offset &&
        offset <= definition.visible.end)
      found.push_back(&definition);
  return found;
}

std::vector<SourceRange> NameTable::usesOf(const Definition &definition) const {
  std::vector<SourceRange> uses;
  for (const auto &[begin, entry] : names)
    if (entry.definition == &definition && begin != beginOf(definition.range))
      uses.push_back({begin.first, begin.second, entry.end});
  return uses;
}

} // namespace occl::frontend
