#include "compiler/frontend/syntax/Parser.h"

#include <gtest/gtest.h>

namespace occl::frontend {
namespace {

struct Parsed {
  SourceManager sources;
  DiagnosticEngine diagnostics{sources};
  std::unique_ptr<Module> module;

  explicit Parsed(std::string text) {
    module = parse(sources, sources.addText("t", std::move(text)), diagnostics);
  }
};

/// An expression with all its brackets.
std::string show(const Expr *expr) {
  constexpr const char *kOperators[] = {"||", "&&", "==", "!=", "<", "<=", ">",
                                        ">=", "+",  "-",  "*",  "/", "%"};
  switch (expr->kind) {
  case ExprKind::Integer:
    return std::to_string(expr->value);
  case ExprKind::Name:
    return std::string(expr->name);
  case ExprKind::Negate:
    return "(-" + show(expr->a) + ")";
  case ExprKind::Not:
    return "(!" + show(expr->a) + ")";
  case ExprKind::Binary:
    return "(" + show(expr->a) + kOperators[static_cast<int>(expr->op)] + show(expr->b) + ")";
  case ExprKind::Conditional:
    return "(" + show(expr->a) + "?" + show(expr->b) + ":" + show(expr->c) + ")";
  case ExprKind::Index:
    return show(expr->a) + "[" + show(expr->b) + (expr->c ? ".." + show(expr->c) : "") + "]";
  default:
    return "?";
  }
}

std::string expression(const std::string &text) {
  Parsed parsed("function f() { let x = " + text + "; }");
  EXPECT_FALSE(parsed.diagnostics.hasErrors()) << parsed.diagnostics.render();
  return show(parsed.module->functions.front().body.at(0)->expr);
}

TEST(Parser, Precedence) {
  EXPECT_EQ(expression("a + b * c - d / e % f"), "((a+(b*c))-((d/e)%f))");
  EXPECT_EQ(expression("a || b && c == d + 1"), "(a||(b&&(c==(d+1))))");
  EXPECT_EQ(expression("-a * !b"), "((-a)*(!b))");
  EXPECT_EQ(expression("--a"), "(-(-a))");
  EXPECT_EQ(expression("(a + b) * c"), "((a+b)*c)");
}

TEST(Parser, ConditionalsNestToTheRight) {
  EXPECT_EQ(expression("a ? b : c ? d : e"), "(a?b:(c?d:e))");
  EXPECT_EQ(expression("a < b ? c + 1 : d"), "((a<b)?(c+1):d)");
}

TEST(Parser, IndicesAndRanges) {
  EXPECT_EQ(expression("s[r + 1][a .. b * 2]"), "s[(r+1)][a..(b*2)]");
}

TEST(Parser, EmptyFileHasNoDeclarations) {
  Parsed parsed("  // nothing\n");
  EXPECT_FALSE(parsed.diagnostics.hasErrors());
  EXPECT_TRUE(parsed.module->algorithms.empty());
}

TEST(Parser, AlgorithmHeader) {
  Parsed parsed(
      "algorithm a(n: int = 2, b: bool,) implements reduce(n, root = 1) modes in_place {}");
  ASSERT_FALSE(parsed.diagnostics.hasErrors()) << parsed.diagnostics.render();
  const AlgorithmDecl &decl = parsed.module->algorithms.front();
  EXPECT_EQ(decl.params.size(), 2u);
  EXPECT_EQ(decl.params[1].type, Type::Bool);
  EXPECT_EQ(decl.collectiveName, "reduce");
  EXPECT_EQ(decl.arguments.at(1).name, "root");
  EXPECT_FALSE(decl.outOfPlace);
  EXPECT_TRUE(decl.inPlace);
}

TEST(Parser, ErrorsDoNotHideEachOther) {
  Parsed parsed("function f() { let = 1; let a = ; for { } if x { let b = ] } }\nfunction g( { }\n"
                "function h() { return }");
  EXPECT_EQ(parsed.diagnostics.numErrors(), 6u) << parsed.diagnostics.render();
  EXPECT_EQ(parsed.module->functions.back().name, "h");
}

TEST(Parser, DeepNestingIsAnError) {
  constexpr int kDeep = 100000;
  for (const char *open : {"(", "-", "!", "a[", "f(", "a ? ", "reduce(", "1+(", "{", "if a {",
                           "for i in 0..1 {", "if a {} else "}) {
    std::string text = "function f() { let x = ";
    if (std::string(open).find('{') != std::string::npos)
      text = "function f() { ";
    for (int i = 0; i < kDeep; ++i)
      text += open;
    Parsed parsed(text);
    EXPECT_TRUE(parsed.diagnostics.hasErrors()) << open;
  }
}

TEST(Parser, LongChainsAreAnError) {
  for (const char *link : {"+1", ".count", "[0]", "&&a", ".copy(a)"}) {
    std::string text = "function f() { let x = a";
    for (int i = 0; i < 100000; ++i)
      text += link;
    Parsed parsed(text + "; }");
    ASSERT_TRUE(parsed.diagnostics.hasErrors()) << link;
    EXPECT_EQ(parsed.diagnostics.all()[0].code, DiagnosticCode::TooDeep) << link;
  }
}

TEST(Parser, ManyLoopVariablesAreAnError) {
  std::string text = "function f() { for a0 in 0..1";
  for (int i = 1; i < 100000; ++i)
    text += ", a" + std::to_string(i) + " in 0..1";
  Parsed parsed(text + " { } }");
  ASSERT_TRUE(parsed.diagnostics.hasErrors());
  EXPECT_EQ(parsed.diagnostics.all()[0].code, DiagnosticCode::TooDeep);
}

} // namespace
} // namespace occl::frontend
