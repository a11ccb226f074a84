// Where the content of a location comes from, exactly: explains a failed postcondition. Slow
// compared with Memory, and run for failures only.
#pragma once

#include "compiler/frontend/Diagnostics.h"
#include "compiler/frontend/Memory.h"
#include "compiler/frontend/Trace.h"

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace occl::frontend {

class Provenance {
public:
  /// `equalInput` has, unless it is empty, for each input location the one that stands for it.
  Provenance(const Layout &layout, const Trace &trace, bool inPlace,
             std::span<const LocationId> equalInput = {})
      : layout(layout), trace(trace), inPlace(inPlace), equalInput(equalInput) {}

  struct Setting {
    std::string mode;        // prefix of the message
    SourceRange algorithm;   // where to point if no statement is to blame
    SourceRange requirement; // what is not met
    std::string context;     // with which values
  };
  /// What a location holds, sorted and with repetitions; expects a Provenance that was not used.
  std::vector<Contribution> contentsOf(LocationId location);
  /// Reports in which way the location does not hold exactly `wanted`, and the statements that made
  /// it so.
  void report(LocationId output, std::vector<Contribution> wanted, const Setting &setting,
              DiagnosticEngine &diagnostics);

private:
  /// A write of one location that the output depends on.
  struct Step {
    const Event *event;
    uint32_t offset; // within the event's range
  };
  using Contents = std::vector<Contribution>; // sorted, with repetitions

  void sliceBackwards(LocationId output);
  void replay();
  Contents contentOf(LocationId location) const;
  Contents contentAtEntry(Place input) const;
  std::string describe(const Contribution &contribution) const;
  void noteReduction(Diagnostic &diagnostic) const;
  void noteHistory(const Contribution &contribution, Diagnostic &diagnostic) const;
  LocationId cellOf(LocationId location) const {
    return inPlace ? layout.inPlaceAlias(location) : location;
  }

  const Layout &layout;
  const Trace &trace;
  bool inPlace;
  std::span<const LocationId> equalInput;
  std::vector<Step> steps;       // in the order of execution
  std::vector<Contents> results; // of the steps
  std::unordered_map<LocationId, Contents> cells;
};

/// Slots of the variables that an expression uses but does not bind itself, each once.
std::vector<uint32_t> freeVariables(const Expr &expr);

} // namespace occl::frontend
