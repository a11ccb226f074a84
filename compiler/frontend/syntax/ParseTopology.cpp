// Topologies, and questions about them.
#include "compiler/frontend/syntax/ParserState.h"

#include <algorithm>

namespace occl::frontend {
namespace {

using Dimension = Quantity::Dimension;

struct Unit {
  std::string_view name;
  Dimension dimension;
  int64_t scale;
};

constexpr Unit kUnits[] = {
    {"ps", Dimension::Time, 1},
    {"ns", Dimension::Time, 1000},
    {"us", Dimension::Time, 1'000'000},
    {"ms", Dimension::Time, 1'000'000'000},
    {"B", Dimension::Size, 1},
    {"KiB", Dimension::Size, 1 << 10},
    {"MiB", Dimension::Size, 1 << 20},
    {"GiB", Dimension::Size, 1 << 30},
    {"MB/s", Dimension::Bandwidth, 1'000'000},
    {"GB/s", Dimension::Bandwidth, 1'000'000'000},
    {"TB/s", Dimension::Bandwidth, 1'000'000'000'000},
    {"Gbit/s", Dimension::Bandwidth, 125'000'000},
};

constexpr std::pair<std::string_view, TopologyItemKind> kItems[] = {
    {"machine", TopologyItemKind::Machine},   {"cost", TopologyItemKind::Cost},
    {"protocol", TopologyItemKind::Protocol}, {"node", TopologyItemKind::Node},
    {"link", TopologyItemKind::Link},         {"switch", TopologyItemKind::Switch},
    {"nic", TopologyItemKind::Nic},
};

const char *examplesOf(Dimension dimension) {
  switch (dimension) {
  case Dimension::Time:
    return "a unit of time: ps, ns, us or ms";
  case Dimension::Bandwidth:
    return "a unit of bandwidth: MB/s, GB/s, TB/s or Gbit/s";
  case Dimension::Size:
    return "a unit of size: B, KiB, MiB or GiB";
  default:
    return "no unit";
  }
}

} // namespace

bool Parser::atWord(std::string_view word) const {
  return sources.text(peek().range) == word && !is(TokenKind::End);
}

bool Parser::acceptWord(std::string_view word) {
  if (!atWord(word))
    return false;
  take();
  return true;
}

bool Parser::parseTopology() {
  TopologyDecl &decl = beginDecl(module->topologies);
  take();
  if (!expectName("of a topology", decl.name, decl.nameRange) || !parseParams(decl))
    return false;
  inTopology = true;
  bool good = parseBlock(decl.body, decl.block, "before the topology's body");
  inTopology = false;
  return good;
}

bool Parser::atTopologyItem() const {
  // A variable may have such a name, too; it is assigned to.
  return peek(1).kind != TokenKind::Assign &&
         std::any_of(std::begin(kItems), std::end(kItems),
                     [&](const auto &item) { return atWord(item.first); });
}

Stmt *Parser::parseTopologyItem() {
  Stmt *statement = newStmt(StmtKind::Topology);
  TopologyItem &item = module->topologyItems.emplace_back();
  statement->item = &item;
  for (const auto &[word, kind] : kItems)
    if (atWord(word))
      item.kind = kind;
  item.range = take().range;
  if (!parseTopologyItem(item))
    return nullptr;
  item.range = since(item.range);
  return finish(*statement) ? statement : nullptr;
}

bool Parser::parseTopologyItem(TopologyItem &item) {
  // Each kind of item has its own order of parts; those with ranks end in the same way.
  switch (item.kind) {
  case TopologyItemKind::Machine:
    return expectName("of a kind of machine", item.name, item.nameRange);
  case TopologyItemKind::Cost:
    return expectName("of a cost", item.name, item.nameRange) &&
           expect(TokenKind::Assign, "after the name of the cost") &&
           parseQuantity(item.value, Dimension::None);
  case TopologyItemKind::Protocol:
    return expectName("of a protocol", item.name, item.nameRange) && parseAttributes(item);
  case TopologyItemKind::Node:
    return parseQuantity(item.value, Dimension::Number);
  case TopologyItemKind::Link:
    return parseLinkEnds(item) && parseAttributes(item);
  case TopologyItemKind::Switch:
    if (!expectName("of a switch", item.name, item.nameRange))
      return false;
    break;
  case TopologyItemKind::Nic:
    break;
  }
  if (!acceptWord("of")) {
    reportExpected("'of'", "before the ranks");
    return false;
  }
  return parseRanks(item.ranks) && parseAttributes(item);
}

bool Parser::parseLinkEnds(TopologyItem &item) {
  item.ranks.resize(2);
  if (!(item.ranks[0].first = parseExpr()) ||
      !expect(TokenKind::Arrow, "between the ends of a link") ||
      !(item.ranks[1].first = parseExpr()))
    return false;
  item.isDuplex = acceptWord("duplex");
  return true;
}

bool Parser::parseRanks(std::vector<RankRange> &ranks) {
  do {
    RankRange range;
    if (!(range.first = parseExpr()) || (accept(TokenKind::DotDot) && !(range.last = parseExpr())))
      return false;
    ranks.push_back(range);
  } while (accept(TokenKind::Comma));
  return true;
}

bool Parser::parseAttributes(TopologyItem &item) {
  // Attributes in any order, each once; which of them an item may have is checked later.
  const struct {
    std::string_view word;
    Quantity &value;
    Dimension dimension;
  } attributes[] = {{"bandwidth", item.bandwidth, Dimension::Bandwidth},
                    {"latency", item.latency, Dimension::Time},
                    {"wire", item.wire, Dimension::Number}};
  while (!is(TokenKind::Semicolon)) {
    auto known = std::find_if(std::begin(attributes), std::end(attributes),
                              [&](const auto &entry) { return atWord(entry.word); });
    // Anything else is no attribute.
    if (known == std::end(attributes)) {
      reportExpected(item.kind == TopologyItemKind::Protocol ? "'latency', 'wire' or ';'"
                                                             : "'bandwidth', 'latency' or ';'",
                     "here");
      return false;
    }
    SourceRange word = take().range;
    // Its dimension is set if it was given before.
    if (known->value.dimension != Dimension::None)
      diagnostics.error(DiagnosticCode::BadAttributes, word,
                        "'" + std::string(known->word) + "' is given twice");
    if (!parseQuantity(known->value, known->dimension))
      return false;
  }
  return true;
}

bool Parser::parseQuantity(Quantity &quantity, Dimension wanted) {
  // A number, then a unit, which may have a slash: GB/s.
  SourceRange begin = peek().range;
  if (!(quantity.expr = parseExpr()))
    return false;
  quantity.dimension = Dimension::Number;
  SourceRange place = peek().range;
  // A unit is a name behind a number; attributes are names, too.
  bool isAttribute = atWord("bandwidth") || atWord("latency") || atWord("wire");
  std::string text;
  if (is(TokenKind::Identifier) && !isAttribute) {
    text = sources.text(take().range);
    if (accept(TokenKind::Slash))
      text += "/" + std::string(sources.text(take().range));
    place = since(place);
    auto unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                             [&](const Unit &entry) { return entry.name == text; });
    quantity.dimension = unit == std::end(kUnits) ? Dimension::None : unit->dimension;
    quantity.scale = unit == std::end(kUnits) ? 1 : unit->scale;
  } else {
    place = previousRange();
  }
  quantity.range = since(begin);
  // The unit must exist and measure what is wanted here.
  bool isUnknown = quantity.dimension == Dimension::None;
  if (!isUnknown && (wanted == Dimension::None || wanted == quantity.dimension))
    return true;
  std::string message = text.empty() ? "this number needs "
                                     : "'" + text + "' is not what is measured here; this needs ";
  if (wanted == Dimension::None)
    message = "there is no unit '" + text + "'";
  else
    message += examplesOf(wanted);
  diagnostics.error(DiagnosticCode::BadUnit, place, message);
  quantity.dimension = wanted == Dimension::None ? Dimension::Number : wanted;
  return true;
}

Expr *Parser::parseTopologyQuery() {
  Expr *expr = newExpr(ExprKind::TopologyQuery, take().range);
  if (!expect(TokenKind::Dot, "after 'topology'") ||
      !expectName("after 'topology.'", expr->name, expr->nameRange))
    return nullptr;
  if (accept(TokenKind::LeftParen) && !parseOperands(expr->operands, "after the arguments"))
    return nullptr;
  return complete(expr);
}

} // namespace occl::frontend
