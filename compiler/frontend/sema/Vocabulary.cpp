#include "compiler/frontend/sema/Vocabulary.h"

namespace occl::frontend {
namespace {

constexpr Word kWords[] = {
#define OCCL_BUILTIN(enumerator, name, least, most, signature, summary)                            \
  {WordKind::Function, name, signature, summary},
#define OCCL_MEMBER(enumerator, name, ofChunk, ofList, ofOrigin, type, summary)                    \
  {WordKind::Property, name, "." name, summary, ofChunk, ofList, ofOrigin},
#define OCCL_QUERY(enumerator, name, count, type, signature, summary)                              \
  {WordKind::Question, name, signature, summary},
#define OCCL_WORD(kind, name, signature, summary) {WordKind::kind, name, signature, summary},
#include "compiler/frontend/sema/Vocabulary.def"
};

} // namespace

std::span<const Word> vocabulary() { return kWords; }

} // namespace occl::frontend
