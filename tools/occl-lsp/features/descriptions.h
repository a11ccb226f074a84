// Texts about names and words, which several features show.
#pragma once

#include "compiler/frontend/sema/Names.h"
#include "compiler/frontend/sema/Vocabulary.h"
#include "tools/occl-lsp/workspace/analysis.h"

#include <optional>
#include <string>
#include <vector>

namespace occl::lsp {

/// "function half(n: int) -> int", "let c: chunk", ...: what a declaration says.
std::string signatureOf(const Analysis &analysis, const frontend::Definition &definition);
/// "n: int", of each parameter, with its default value if it has one.
std::vector<std::string> parametersOf(const Analysis &analysis, const frontend::Decl &decl);
/// The comment right above a declaration, without its slashes; may be empty.
std::string commentAbove(const Analysis &analysis, frontend::SourceRange declaration);
/// Null if the language has no such word of this kind.
const frontend::Word *wordOf(frontend::WordKind kind, std::string_view name);
/// Of the first kind that has it.
const frontend::Word *wordOf(std::initializer_list<frontend::WordKind> kinds,
                             std::string_view name);

} // namespace occl::lsp
