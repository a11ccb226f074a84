// Which names a program has, where they are defined, used and visible: for editors.
#pragma once

#include "compiler/frontend/syntax/AST.h"

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace occl::frontend {

enum class NameKind : uint8_t {
  Parameter,
  Let,
  Var,
  Loop, // of a loop, a comprehension or a reduction
  Rank, // of input[r] in a collective, and of scratch s[r]
  Scratch,
  Function,
  Collective,
  Algorithm,
  Topology,
};

struct Definition {
  NameKind kind = NameKind::Let;
  Type type = Type::Error; // of a variable
  std::string_view name;
  SourceRange range;           // of the name
  SourceRange visible;         // of a variable: where it can be named; other names are everywhere
  const Decl *owner = nullptr; // whose variable it is, or the declaration itself
};

/// What the resolver has found. It refers to the program, which lives longer. Names in what was not
/// understood, or after too many errors, are missing. Not thread-safe while it is filled.
class NameTable {
public:
  /// For the resolver: definitions come before their uses, `definition` is where the name stands
  /// there.
  Definition &define(Definition definition);
  void use(SourceRange place, SourceRange definition);

  const std::deque<Definition> &definitions() const { return all; }
  /// What the name at this byte, or just before it, means; null if there is none.
  const Definition *at(FileId file, uint32_t offset) const;
  /// The variables that can be named at this byte.
  std::vector<const Definition *> visibleAt(FileId file, uint32_t offset) const;
  /// Where it is named, without its definition, in the order of files and texts.
  std::vector<SourceRange> usesOf(const Definition &definition) const;

private:
  using Place = std::pair<FileId, uint32_t>; // a byte
  static Place beginOf(SourceRange range) { return {range.file, range.begin}; }

  /// Of a definition or a use.
  struct Entry {
    uint32_t end;
    Definition *definition;
  };
  std::deque<Definition> all;
  std::map<Place, Entry> names;
};

} // namespace occl::frontend
