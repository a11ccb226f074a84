// What a program did, in order, compactly: only diagnostics read it.
#pragma once

#include "compiler/frontend/memory/Layout.h"
#include "compiler/frontend/syntax/AST.h"

#include <span>
#include <string>
#include <vector>

namespace occl::frontend {

using ContextId = uint32_t;
inline constexpr ContextId kNoContext = 0;

/// The order of writes to a location: 0 never written, 1 its content at entry, n + 2 what event n
/// wrote.
using Version = uint32_t;
inline constexpr Version kUnwritten = 0;
inline constexpr Version kEntry = 1;

/// One copy or reduction.
struct Event {
  const Expr *expr = nullptr;
  ContextId context = kNoContext;
  uint32_t firstSource = 0; // in the trace's sources
  uint32_t numSources = 0;
  LocationId destination = 0;
  uint32_t count = 0;
};

class Trace {
public:
  /// A loop variable and its value, within the loops around it.
  ContextId addContext(ContextId parent, std::string_view variable, int64_t value) {
    contexts.push_back({parent, variable, value});
    return static_cast<ContextId>(contexts.size());
  }
  /// The version of what the event wrote.
  Version addEvent(const Expr *expr, ContextId context, std::span<const LocationId> from,
                   LocationId destination, uint32_t count) {
    events.push_back({expr, context, static_cast<uint32_t>(sources.size()),
                      static_cast<uint32_t>(from.size()), destination, count});
    sources.insert(sources.end(), from.begin(), from.end());
    return now();
  }
  /// The version of the last event.
  Version now() const { return static_cast<Version>(events.size()) + kEntry; }

  size_t numEvents() const { return events.size(); }
  const Event &event(size_t index) const { return events[index]; }
  /// Of a version above kEntry.
  const Event &eventOf(Version version) const { return events[version - kEntry - 1]; }
  std::span<const LocationId> sourcesOf(const Event &event) const {
    return std::span(sources).subspan(event.firstSource, event.numSources);
  }

  /// " (i = 2, hop = 3)", outermost first; empty without loops.
  std::string describe(ContextId context) const {
    std::string text;
    for (ContextId id = context; id != kNoContext; id = contexts[id - 1].parent) {
      const Context &entry = contexts[id - 1];
      std::string one = std::string(entry.variable) + " = " + std::to_string(entry.value);
      text = text.empty() ? one : one + ", " + text;
    }
    return text.empty() ? "" : " (" + text + ")";
  }

private:
  struct Context {
    ContextId parent;
    std::string_view variable;
    int64_t value;
  };
  std::vector<Context> contexts;
  std::vector<Event> events;
  std::vector<LocationId> sources;
};

} // namespace occl::frontend
