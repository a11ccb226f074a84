// Where the content of a location comes from, exactly: explains a failed postcondition. Slow
// compared with Memory, and run for failures only.
#pragma once

#include "compiler/frontend/diagnostics/Diagnostics.h"
#include "compiler/frontend/memory/Memory.h"
#include "compiler/frontend/memory/Trace.h"

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace occl::frontend {

/// A contribution, and how often it counts in a value.
struct Share {
  Contribution contribution;
  uint64_t times = 1;
};

/// Bounded: of a history with more than some 10^8 chunks and contributions it sees only a part, see
/// isCut.
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
  /// What a location holds, sorted, each contribution once; expects a Provenance that was not used.
  std::vector<Share> contentsOf(LocationId location);
  /// The chunks and contributions that contentsOf has looked at, which is what takes time.
  uint64_t work() const { return lookedAt; }
  /// Whether that was too much, so that what contentsOf has returned is wrong.
  bool isCut() const { return cut; }
  /// Reports in which way the location does not hold exactly these contributions, and the
  /// statements that made it so.
  Diagnostic &report(LocationId output, const std::vector<Contribution> &contributions,
                     const Setting &setting, DiagnosticEngine &diagnostics);

private:
  /// A write of one location that the output depends on.
  struct Step {
    const Event *event;
    uint32_t offset; // within the event's range
  };
  using Contents = std::vector<Share>; // sorted, each contribution once

  void sliceBackwards(LocationId output);
  void replay();
  bool spend(uint64_t amount);
  Contents contentOf(LocationId location) const;
  std::optional<Contribution> contentAtEntry(LocationId location) const;
  Contribution sameAs(Place input) const;
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
  std::vector<Step> steps; // in the order of execution
  std::unordered_map<LocationId, Contents> cells;
  uint64_t lookedAt = 0;
  bool cut = false;
};

/// Slots of the variables that an expression uses but does not bind itself, each once.
std::vector<uint32_t> freeVariables(const Expr &expr);

} // namespace occl::frontend
