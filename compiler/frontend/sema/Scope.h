// The variables of one declaration while it is resolved.
#pragma once

#include "compiler/frontend/sema/Names.h"
#include "compiler/frontend/syntax/AST.h"

#include <string_view>
#include <unordered_map>
#include <vector>

namespace occl::frontend {

struct Variable {
  std::string_view name;
  SourceRange range;
  Type type = Type::Error;
  uint32_t slot = 0;
  NameKind kind = NameKind::Let;
  Definition *definition = nullptr; // where names are collected
  bool isUsed = false;

  bool isAssignable() const { return kind == NameKind::Var; }
};

/// Nested blocks of names. A name means one thing at a time: an inner block may not declare what is
/// visible already.
class Scope {
public:
  /// Null if the name is not visible. The result is valid until the next declaration.
  Variable *find(std::string_view name) {
    auto entry = visible.find(name);
    return entry == visible.end() ? nullptr : &variables[entry->second];
  }

  /// The name must not be visible. Every variable has a slot of its own.
  Variable &declare(std::string_view name, SourceRange range, Type type, NameKind kind) {
    visible[name] = variables.size();
    return variables.emplace_back(Variable{name, range, type, numSlots++, kind, nullptr, false});
  }

  size_t open() const { return variables.size(); }
  /// Makes all that was declared since open() invisible.
  void close(size_t mark) {
    while (variables.size() > mark) {
      visible.erase(variables.back().name);
      variables.pop_back();
    }
  }

  uint32_t slotsUsed() const { return numSlots; }
  const std::vector<Variable> &all() const { return variables; }

private:
  std::vector<Variable> variables;
  std::unordered_map<std::string_view, size_t> visible;
  uint32_t numSlots = 0;
};

} // namespace occl::frontend
