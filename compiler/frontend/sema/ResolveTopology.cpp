// Names and types in topologies, and of questions about them.
#include "compiler/frontend/sema/DeclaredTopology.h"
#include "compiler/frontend/sema/Resolver.h"

#include <algorithm>
#include <array>

namespace occl::frontend {
namespace {

struct QueryInfo {
  std::string_view name;
  TopologyQuery query;
  size_t numArguments;
  Type type;
};

constexpr QueryInfo kQueries[] = {
#define OCCL_QUERY(enumerator, name, count, type, signature, summary)                              \
  {name, TopologyQuery::enumerator, count, Type::type},
#include "compiler/frontend/sema/Vocabulary.def"
};

std::string arguments(size_t count) {
  return count == 0 ? "no arguments"
                    : std::to_string(count) + (count == 1 ? " argument" : " arguments");
}

} // namespace

void Resolver::resolveTopology(TopologyDecl &decl) {
  declareParams(decl, /*scalarsOnly=*/true);
  inTopology = true;
  resolveBody(decl.body, decl.block);
  inTopology = false;
  decl.numSlots = scope.slotsUsed();
}

void Resolver::checkPlaced(const Stmt &statement) {
  bool isMisplaced = statement.kind == StmtKind::Scratch || statement.kind == StmtKind::Return ||
                     statement.kind == StmtKind::Expression;
  if (isMisplaced)
    diagnostics.error(DiagnosticCode::MisplacedInTopology, statement.range,
                      "a topology moves nothing: it consists of items (machine, cost, protocol, "
                      "node, link, switch, nic), variables, loops and conditions");
}

void Resolver::resolveTopologyItem(const TopologyItem &item) {
  for (const RankRange &range : item.ranks)
    for (Expr *bound : {range.first, range.last})
      if (bound)
        want(bound, Type::Int, "a rank");
  for (const Quantity *quantity : {&item.value, &item.bandwidth, &item.latency, &item.wire})
    if (quantity->expr)
      want(quantity->expr, Type::Int, "a quantity");
}

void Resolver::resolveTopologyQuery(Expr &expr) {
  // Arguments first: they are numbers, whatever is asked.
  for (Expr *operand : expr.operands)
    want(operand, Type::Int, "what is asked about");
  auto info = std::find_if(std::begin(kQueries), std::end(kQueries),
                           [&](const QueryInfo &entry) { return entry.name == expr.name; });
  // An unknown question gets the nearest known one as a suggestion.
  if (info == std::end(kQueries)) {
    std::vector<std::string_view> names;
    for (const QueryInfo &entry : kQueries)
      names.push_back(entry.name);
    return unknownName(expr.name, expr.nameRange, "question about the topology", std::move(names));
  }
  expr.type = info->type;
  expr.value = static_cast<int64_t>(info->query);
  if (expr.operands.size() != info->numArguments)
    diagnostics.error(DiagnosticCode::WrongArguments, expr.range,
                      "'topology." + std::string(info->name) + "' takes " +
                          arguments(info->numArguments) + ", not " +
                          std::to_string(expr.operands.size()));
}

} // namespace occl::frontend
