// What the language brings along, for people: editors show it.
#pragma once

#include <span>
#include <string_view>

namespace occl::frontend {

enum class WordKind {
  Function,    // built in
  Property,    // .rank
  Operation,   // .copy(place)
  Question,    // topology.ranks
  Declaration, // begins one
  Clause,      // between an algorithm's head and its body
  Item,        // of a collective; input and output are buffers, too
  Statement,   // begins one
  Operator,    // within expressions and loops
  TypeName,
  ModeName,
  ProtocolName,
  Hint,         // of one copy or reduction, and of threadblock
  TopologyItem, // begins a statement of a topology
};

struct Word {
  WordKind kind;
  std::string_view name;
  std::string_view signature; // how it is written
  std::string_view summary;   // what it means, in a sentence of Markdown
  // Of a Property: what has it.
  bool isOfChunk = false, isOfList = false, isOfOrigin = false;
};

/// All of them. A word may be there several times, in different kinds.
std::span<const Word> vocabulary();

} // namespace occl::frontend
