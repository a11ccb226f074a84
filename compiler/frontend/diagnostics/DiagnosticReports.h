// The frontend's errors as reports.
#pragma once

#include "compiler/diagnostics/Report.h"
#include "compiler/frontend/diagnostics/Diagnostics.h"

#include <vector>

namespace occl::frontend {

/// Nothing if it is no place.
std::optional<diagnostics::Range> rangeOf(SourceRange range, const SourceManager &sources);

/// One for each error, in the order of their discovery.
std::vector<diagnostics::Report> reportsOf(const DiagnosticEngine &engine,
                                           const SourceManager &sources);

} // namespace occl::frontend
