// The syntax tree of .coll files. The parser builds it; the resolver fills in what is marked
// "resolved"; after that it does not change. Nodes refer to each other by plain pointers and are
// owned by the Module that they belong to; names point into the SourceManager's texts.
#pragma once

#include "compiler/frontend/diagnostics/SourceManager.h"

#include <deque>
#include <string_view>
#include <vector>

namespace occl::frontend {

enum class Type : uint8_t {
  Error, // of an expression with a reported mistake: fits everything
  Void,  // of a call without result
  Int,   // 64 bits, signed
  Bool,
  Chunk,    // a value, read from a location
  Location, // a place: a destination, or a chunk when it is used as a value
  IntList,
  IntMatrix, // a list of lists of integers; they may differ in length
  ChunkList,
  Origin, // of a chunk: only its rank and index can be asked for
  Row,    // a buffer of one rank: input[r]
  Buffer, // input, output or a scratch of all ranks
};

/// "int", "chunk", ...
const char *nameOf(Type type);
/// The type of a list's elements; Error of what is no list.
Type elementOf(Type list);
/// The type of a list of such elements; Error if there is none.
Type listOf(Type element);
inline bool isList(Type type) { return type >= Type::IntList && type <= Type::ChunkList; }

struct FunctionDecl;
struct Expr;
struct TopologyItem;

/// `name in first..last`: name takes the values first, ..., last - 1. Without `last`, `first` is a
/// list, and name takes its elements.
struct Generator {
  std::string_view name;
  SourceRange nameRange;
  SourceRange range;
  Expr *first = nullptr;
  Expr *last = nullptr;
  uint32_t slot = 0;     // resolved
  Type type = Type::Int; // resolved
};

/// One or more nested loops: `a in x..y, b in z..w where condition`.
struct Generators {
  std::vector<Generator> list;
  Expr *where = nullptr;
};

enum class ExprKind : uint8_t {
  Integer,       // value
  Boolean,       // value
  Name,          // name; resolved: Variable, Input, Output or Scratch
  Negate,        // -a
  Not,           // !a
  Binary,        // a op b
  Conditional,   // a ? b : c
  Index,         // a[b] or a[b..c]; resolved: Location, Slice or Index (of a buffer: a row)
  Call,          // name(operands); resolved: Call or Builtin
  Member,        // a.name; resolved: value is the Member
  Method,        // a.name(operands); resolved: Has
  Copy,          // a.copy(b)
  Reduce,        // reduce(operands).into(b), or reduce(generators: operands[0]).into(b)
  List,          // [operands], or [operands[0] for generators]
  Range,         // a..b, as an element of a list
  TopologyQuery, // topology.name or topology.name(operands); resolved: value is the TopologyQuery
  // The kinds below exist in resolved trees only.
  Variable, // slot
  Input,
  Output,
  Scratch,  // slot, of the variable that holds the scratch
  Location, // a[b][c] or a[b][c..d]
  Slice,    // a[b] or a[b..c], of a chunk
  Element,  // a[b], of a list
  Sublist,  // a[b..c], of a list
  Builtin,  // name(operands); value is the Builtin
  Has,      // a.has(operands[0], operands[1])
};

enum class BinaryOp : uint8_t {
  Or,
  And,
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  Add,
  Subtract,
  Multiply,
  Divide,
  Remainder
};

enum class Builtin : uint8_t {
  Min,
  Max,
  Log2,
  Pow,
  Sum,
  Contains,
  Position,
  Offsets,
  Reverse,
  Split,
  Group
};
enum class Member : uint8_t { Rank, Index, Count, Length, Origin, Contributions };

/// What is asked of the schedule: by a block for what happens in it, or by a single copy or
/// reduction. Null: nothing.
struct HintArguments {
  Expr *channel = nullptr;
  Expr *parallel = nullptr;
  Expr *sendBlock = nullptr;
  Expr *recvBlock = nullptr;
  bool aggregate = false;
};

struct Expr {
  ExprKind kind = ExprKind::Integer;
  Type type = Type::Error; // resolved
  BinaryOp op = BinaryOp::Or;
  uint16_t height = 1; // of the tree: bounded, because many functions descend it
  uint32_t slot = 0;   // resolved
  SourceRange range;
  SourceRange nameRange; // the name, operator or method
  std::string_view name;
  int64_t value = 0;
  Expr *a = nullptr;
  Expr *b = nullptr;
  Expr *c = nullptr;
  Expr *d = nullptr;
  std::vector<Expr *> operands;
  Generators generators;
  const FunctionDecl *function = nullptr; // resolved, of a Call
  const HintArguments *hints = nullptr;   // of a Copy or Reduce; may be null
};

enum class StmtKind : uint8_t {
  Let,        // let name = expr;
  Var,        // var name = expr;
  Assign,     // name = expr;
  For,        // for generators body
  If,         // if expr body else elseBody
  Assert,     // assert expr, message;
  Scratch,    // scratch name[expr]; or scratch name[rank]: expr;
  Return,     // return expr; or return;
  Hints,      // channel(...) body, and the like
  When,       // when bytes in ... body: version `slot` of the algorithm
  Expression, // expr;
  Topology,   // item, in a topology
};

struct Stmt {
  StmtKind kind = StmtKind::Expression;
  SourceRange range; // a loop's or condition's up to its body
  std::string_view name;
  SourceRange nameRange;
  uint32_t slot = 0; // resolved
  Expr *expr = nullptr;
  Generators generators;
  std::vector<Stmt *> body;
  std::vector<Stmt *> elseBody;
  SourceRange block, elseBlock; // where these stand, with their braces; no place: absent
  std::string_view message;
  const HintArguments *hints = nullptr; // of Hints
  SourceRange rankRange;                // of Scratch: the variable for the rank, in `rankSlot`
  uint32_t rankSlot = 0;
  const TopologyItem *item = nullptr;
};

struct Param {
  std::string_view name;
  SourceRange nameRange;
  Type type = Type::Int;
  Expr *defaultValue = nullptr;
};

/// What all declarations have. The parameters occupy the first slots of the frame, in order.
struct Decl {
  std::string_view name;
  SourceRange nameRange;
  SourceRange range; // from its first word to its end, as far as it was understood
  SourceRange block; // its body or items, with their braces; no place: absent
  std::vector<Param> params;
  uint32_t numSlots = 0; // resolved
};

struct FunctionDecl : Decl {
  Type result = Type::Void;
  SourceRange resultRange;
  std::vector<Stmt *> body;
};

/// `word[rank]: expr;` in a collective, for each rank.
struct RankItem {
  SourceRange range; // no place: absent
  std::string_view rank;
  SourceRange rankRange;
  Expr *expr = nullptr;
  uint32_t slot = 0; // resolved
};

/// `output == sources;`
struct Requirement {
  SourceRange range;
  Expr *output = nullptr;
  Expr *value = nullptr; // a Location or a Reduce without destination
};

struct PostItem {
  SourceRange range; // up to its block
  SourceRange block; // with its braces
  Generators generators;
  std::vector<Requirement> requirements;
};

/// Inputs that hold data at entry: what is `equal`, if it is given, the same.
struct DefinedInput {
  Expr *input = nullptr;
  Expr *equal = nullptr;
};

struct PreItem {
  SourceRange range; // up to its block
  SourceRange block; // with its braces
  Generators generators;
  std::vector<DefinedInput> inputs;
};

struct CollectiveDecl : Decl {
  RankItem input, output, inplace;
  Expr *part = nullptr;
  std::vector<Stmt *> bindings; // asserts and lets, in order
  std::vector<PreItem> pres;    // if none names inputs alone, all hold data
  std::vector<PostItem> posts;
};

/// An argument of a collective, by position or by name.
struct Argument {
  std::string_view name; // empty: by position
  SourceRange nameRange;
  Expr *expr = nullptr;
};

/// `instances expr` and `protocol name`; either may be absent.
struct ScheduleClauses {
  Expr *instances = nullptr;
  std::string_view protocol;
  SourceRange protocolRange;
};

/// `when bytes in first .. last`, where last may be absent.
struct VersionDecl {
  SourceRange range;
  Expr *first = nullptr;
  Expr *last = nullptr;
  ScheduleClauses clauses;
};

struct AlgorithmDecl : Decl {
  std::string_view collectiveName;
  SourceRange collectiveRange;
  std::vector<Argument> arguments;
  SourceRange modesRange; // no place: not given, both if possible
  bool outOfPlace = true;
  bool inPlace = true;
  ScheduleClauses clauses;
  std::vector<VersionDecl> versions; // in textual order; none: the body is the only version
  std::vector<Stmt *> body;
  const CollectiveDecl *collective = nullptr; // resolved
  std::vector<Expr *> collectiveArguments;    // resolved: one a parameter of the collective
};

/// What a machine looks like. It has parameters and a body as an algorithm has, but moves nothing.
struct TopologyDecl : AlgorithmDecl {};

struct ImportDecl {
  std::string_view path;
  SourceRange range;
  FileId file = SourceRange::kNoFile; // resolved: what it imports, unless that is not there
};

/// `expr` of a unit: so many times `scale` picoseconds, bytes or bytes a second.
struct Quantity {
  enum class Dimension : uint8_t { None, Number, Time, Bandwidth, Size };
  Dimension dimension = Dimension::None; // None: not given
  SourceRange range;
  Expr *expr = nullptr;
  int64_t scale = 1;
};

/// `first` or `first..last`.
struct RankRange {
  Expr *first = nullptr;
  Expr *last = nullptr;
};

enum class TopologyItemKind : uint8_t {
  Machine,  // machine name;
  Cost,     // cost name = value;
  Protocol, // protocol name [latency value] [wire value];
  Node,     // node value;
  Link,     // link ranks[0].first -> ranks[1].first [duplex] ...;
  Switch,   // switch name of ranks ...;
  Nic,      // nic of ranks ...;
};

/// A statement of a topology.
struct TopologyItem {
  TopologyItemKind kind = TopologyItemKind::Node;
  SourceRange range;
  std::string_view name;
  SourceRange nameRange;
  std::vector<RankRange> ranks;
  bool isDuplex = false;
  Quantity value, bandwidth, latency, wire;
};

/// One file.
struct Module {
  FileId file = 0;
  std::vector<ImportDecl> imports;
  std::deque<FunctionDecl> functions;
  std::deque<CollectiveDecl> collectives;
  std::deque<AlgorithmDecl> algorithms;
  std::deque<TopologyDecl> topologies;
  std::deque<TopologyItem> topologyItems;
  std::deque<Expr> expressions;
  std::deque<Stmt> statements;
  std::deque<HintArguments> hints;
};

} // namespace occl::frontend
