// From the text of an MSCCL XML file to its content.
#pragma once

#include "compiler/interchange/msccl/MscclXml.h"
#include "compiler/interchange/msccl/Reporter.h"

namespace occl::interchange::msccl {

/// What the file says, each attribute for itself in range; nullopt if there were errors, which are
/// then in `diagnostics`. Unknown elements and attributes are skipped with a warning.
std::optional<Algorithm> parseAlgorithm(const frontend::SourceManager &sources,
                                        frontend::FileId file,
                                        frontend::DiagnosticEngine &diagnostics,
                                        std::vector<Warning> &warnings);

/// Checks what concerns several elements: ids, peers, ranges, dependencies and who owns which
/// connection; sorts gpus and thread blocks by id. False after an error.
bool checkAlgorithm(Algorithm &algorithm, Reporter &reporter);

} // namespace occl::interchange::msccl
