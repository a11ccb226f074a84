// Who watches an algorithm run: editors show what names and places are.
#pragma once

#include "compiler/frontend/memory/Layout.h"
#include "compiler/frontend/syntax/AST.h"

#include <span>

namespace occl::frontend {

/// Told what happens in the order of execution, once for each time.
class Observer {
public:
  virtual ~Observer() = default;
  /// A variable, whose name stands at `name` where it is declared or assigned to, gets a value.
  virtual void onInt(SourceRange name, int64_t value) = 0;
  virtual void onBool(SourceRange name, bool value) = 0;
  virtual void onInts(SourceRange name, std::span<const int64_t> values) = 0;
  /// The same of a chunk, which is what lies at the place, and of a location; or an expression that
  /// is a location is evaluated.
  virtual void onPlace(SourceRange place, const Layout &layout, const Place &where) = 0;
};

} // namespace occl::frontend
