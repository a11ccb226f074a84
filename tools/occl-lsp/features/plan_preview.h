// The command occl.plan: what a document, saved or not, is compiled to.
#pragma once

#include "tools/occl-lsp/protocol/messages.h"
#include "tools/occl-lsp/workspace/workspace.h"

#include <string>

namespace occl::lsp {

/// What occlc says with --stats and of the plan with explain, for each version of the algorithm; on
/// the settings' topology, or else shared memory. Without a name, the algorithm at the position is
/// meant, or else the first one. An error with the compiler's messages if there is no plan. Very
/// long texts are cut, and say so.
llvm::Expected<std::string> previewPlan(Workspace &workspace, Document &document,
                                        const PlanParams &params);

} // namespace occl::lsp
