#include "compiler/frontend/sema/Resolver.h"

#include <algorithm>

namespace occl::frontend {

/// What is declared outside of all bodies: uses may come before.
static void defineAll(const Module &module, NameTable &names) {
  // Declarations for editors: with their parameters, each visible from its own place to the end of
  // the declaration.
  auto define = [&](NameKind kind, const Decl &decl) {
    if (!decl.name.empty())
      names.define({kind, Type::Error, decl.name, decl.nameRange, {}, &decl});
    for (const Param &param : decl.params)
      names.define({NameKind::Parameter,
                    param.type,
                    param.name,
                    param.nameRange,
                    {param.nameRange.file, param.nameRange.end, decl.range.end},
                    &decl});
  };
  for (const FunctionDecl &decl : module.functions)
    define(NameKind::Function, decl);
  for (const CollectiveDecl &decl : module.collectives)
    define(NameKind::Collective, decl);
  for (const AlgorithmDecl &decl : module.algorithms)
    define(NameKind::Algorithm, decl);
  for (const TopologyDecl &decl : module.topologies)
    define(NameKind::Topology, decl);
}

void resolve(Program &program, const SourceManager &sources, DiagnosticEngine &diagnostics,
             NameTable *names) {
  for (const std::unique_ptr<Module> &module : program.modules)
    if (names)
      defineAll(*module, *names);
  for (const std::unique_ptr<Module> &module : program.modules)
    Resolver(program, sources, diagnostics, names).resolveModule(*module);
}

void Resolver::resolveModule(Module &module) {
  // Each kind of declaration is resolved by itself, with a scope of its own.
  for (FunctionDecl &decl : module.functions)
    resolveFunction(decl);
  for (CollectiveDecl &decl : module.collectives)
    resolveCollective(decl);
  for (AlgorithmDecl &decl : module.algorithms)
    resolveAlgorithm(decl);
  for (TopologyDecl &decl : module.topologies)
    resolveTopology(decl);
}

Variable *Resolver::declare(std::string_view name, SourceRange range, Type type, NameKind kind) {
  // A name is declared once in all scopes around: no shadowing, so that a name means one thing in a
  // program.
  if (Variable *earlier = scope.find(name)) {
    diagnostics
        .error(DiagnosticCode::Redefinition, range,
               "'" + std::string(name) + "' is declared already")
        .note(earlier->range, "first here");
    return nullptr;
  }
  Variable &variable = scope.declare(name, range, type, kind);
  if (names && kind != NameKind::Parameter && !name.empty())
    variable.definition =
        &names->define({kind, type, name, range, {range.file, range.end, range.end}, declaration});
  return &variable;
}

void Resolver::closeScope(size_t mark, SourceRange place) {
  for (size_t i = mark; i < scope.all().size(); ++i)
    if (Definition *definition = scope.all()[i].definition)
      definition->visible.end = std::max(definition->visible.begin, place.end);
  scope.close(mark);
}

void Resolver::declareParams(Decl &decl, bool numbersOnly) {
  // Parameters come first and fill the first slots, by which arguments are passed.
  scope = Scope();
  declaration = &decl;
  allowBuffers = false;
  // Algorithms and collectives take numbers, which -D can give; functions take anything.
  for (Param &param : decl.params) {
    bool isNumbers = param.type == Type::Int || param.type == Type::Bool ||
                     param.type == Type::IntList || param.type == Type::IntMatrix;
    if (numbersOnly && !isNumbers)
      diagnostics.error(DiagnosticCode::WrongType, param.nameRange,
                        "a parameter here is an 'int', a 'bool' or a list of numbers, not a '" +
                            std::string(nameOf(param.type)) + "'");
    if (!numbersOnly && param.defaultValue)
      diagnostics.error(DiagnosticCode::MisplacedDeclaration, param.defaultValue->range,
                        "the parameters of a function have no default values");
    if (param.defaultValue)
      want(param.defaultValue, param.type, "the default value");
    // Declared in any case: the parameters occupy the first slots.
    if (!declare(param.name, param.nameRange, param.type, NameKind::Parameter))
      scope.declare(param.name, param.nameRange, param.type, NameKind::Parameter);
  }
}

void Resolver::resolveFunction(FunctionDecl &decl) {
  declareParams(decl, /*numbersOnly=*/false);
  function = &decl;
  allowBuffers = true;
  resolveBody(decl.body, decl.block);
  function = nullptr;
  decl.numSlots = scope.slotsUsed();
}

void Resolver::resolveCollective(CollectiveDecl &decl) {
  // Items in the order in which the elaboration executes them.
  declareParams(decl, /*numbersOnly=*/true);
  if (!decl.name.empty() && !scope.find("ranks"))
    diagnostics.error(DiagnosticCode::BadCollective, decl.nameRange,
                      "a collective has a parameter 'ranks', its number of ranks");
  for (Stmt *statement : decl.bindings)
    resolveStatement(*statement);
  // Required items, then those that have a default.
  resolveRankItem(decl.input, decl, "input");
  resolveRankItem(decl.output, decl, "output");
  if (decl.inplace.range.isValid())
    resolveRankItem(decl.inplace, decl, "inplace");
  if (decl.part)
    want(decl.part, Type::Int, "the chunks of a part");
  else if (!decl.name.empty() && !scope.find("chunks"))
    diagnostics.error(DiagnosticCode::BadCollective, decl.nameRange,
                      "a collective without parameter 'chunks' says 'part <chunks>;'");
  for (PreItem &pre : decl.pres)
    resolvePre(pre);
  for (PostItem &post : decl.posts)
    resolvePost(post);
  closeScope(0, decl.block);
  decl.numSlots = scope.slotsUsed();
}

void Resolver::resolveRankItem(RankItem &item, const CollectiveDecl &decl, const char *word) {
  // One that was not given is reported at the collective's name.
  if (!item.range.isValid()) {
    if (!decl.name.empty())
      diagnostics.error(DiagnosticCode::BadCollective, decl.nameRange,
                        "the collective '" + std::string(decl.name) + "' lacks '" + word +
                            "[r]: <chunks>;'");
    return;
  }
  size_t mark = scope.open();
  item.slot = slotOf(declare(item.rank, item.rankRange, Type::Int, NameKind::Rank));
  want(item.expr, Type::Int, "this number of chunks");
  closeScope(mark, item.range);
}

void Resolver::resolvePre(PreItem &pre) {
  // Preconditions may name buffers, which the rest of a collective cannot.
  size_t mark = scope.open();
  resolveGenerators(pre.generators);
  allowBuffers = true;
  for (const DefinedInput &defined : pre.inputs)
    for (Expr *input : {defined.input, defined.equal}) {
      if (!input)
        continue;
      want(input, Type::Location, "what a precondition names");
      // Only inputs: everything else is undefined at entry.
      bool isInput = input->kind == ExprKind::Location && input->a->kind == ExprKind::Input;
      if (input->type == Type::Location && !isInput)
        diagnostics.error(DiagnosticCode::WrongType, input->range,
                          "a precondition names places of 'input'");
    }
  allowBuffers = false;
  closeScope(mark, pre.block);
}

void Resolver::resolvePost(PostItem &post) {
  size_t mark = scope.open();
  resolveGenerators(post.generators);
  allowBuffers = true;
  for (Requirement &requirement : post.requirements)
    resolveRequirement(requirement);
  allowBuffers = false;
  closeScope(mark, post.block);
}

void Resolver::resolveRequirement(Requirement &requirement) {
  // Left: a place of the output. Right: a place of the input, or a reduction of such places.
  want(requirement.output, Type::Location, "the left side");
  auto isPlaceOf = [](const Expr &expr, ExprKind buffer) {
    return expr.type == Type::Error || (expr.kind == ExprKind::Location && expr.a->kind == buffer);
  };
  if (!isPlaceOf(*requirement.output, ExprKind::Output))
    diagnostics.error(DiagnosticCode::WrongType, requirement.output->range,
                      "the left side of a postcondition is a place of 'output'");
  bool isReduction = requirement.value->kind == ExprKind::Reduce;
  if (isReduction)
    resolveReduce(*requirement.value);
  else
    want(requirement.value, Type::Location, "the right side");
  // Each operand of the reduction, or the one place.
  std::vector<Expr *> single{requirement.value};
  for (const Expr *source : isReduction ? requirement.value->operands : single)
    if (!isPlaceOf(*source, ExprKind::Input))
      diagnostics.error(DiagnosticCode::WrongType, source->range,
                        "the right side of a postcondition is a place of 'input' or a reduction "
                        "of such places");
}

void Resolver::resolveAlgorithm(AlgorithmDecl &decl) {
  // The collective first, then its arguments, then versions and body.
  declareParams(decl, /*numbersOnly=*/true);
  auto known = program.collectives.find(decl.collectiveName);
  if (known != program.collectives.end()) {
    decl.collective = known->second;
    noteUse(decl.collectiveRange, known->second->nameRange);
    resolveArguments(decl);
  } else if (!decl.collectiveName.empty()) {
    std::vector<std::string_view> names;
    for (const std::unique_ptr<Module> &module : program.modules)
      for (const CollectiveDecl &collective : module->collectives)
        names.push_back(collective.name);
    unknownName(decl.collectiveName, decl.collectiveRange, "collective", std::move(names));
  }
  resolveVersions(decl);
  allowBuffers = true;
  resolveBody(decl.body, decl.block);
  warnOfUnused(0);
  decl.numSlots = scope.slotsUsed();
}

void Resolver::resolveVersions(AlgorithmDecl &decl) {
  auto resolveClauses = [&](const ScheduleClauses &clauses) {
    if (clauses.instances)
      want(clauses.instances, Type::Int, "the number of instances");
  };
  resolveClauses(decl.clauses);
  for (const VersionDecl &version : decl.versions) {
    want(version.first, Type::Int, "the smallest size");
    if (version.last)
      want(version.last, Type::Int, "the size at the end");
    resolveClauses(version.clauses);
  }
}

void Resolver::resolveArguments(AlgorithmDecl &decl) {
  // Arguments are expressions of the algorithm's parameters.
  for (Argument &argument : decl.arguments)
    resolveExpr(argument.expr);
  bindArguments(decl);
  const CollectiveDecl &collective = *decl.collective;
  // Each parameter of the collective has an argument of its type, or a default.
  for (size_t i = 0; i < collective.params.size(); ++i) {
    const Param &param = collective.params[i];
    Expr *&bound = decl.collectiveArguments[i];
    if (bound && bound->type != param.type && bound->type != Type::Error)
      diagnostics
          .error(DiagnosticCode::WrongType, bound->range,
                 "'" + std::string(param.name) + "' is of type '" + nameOf(param.type) +
                     "', this is of type '" + nameOf(bound->type) + "'")
          .note(param.nameRange, "declared here");
    if (!bound && !param.defaultValue)
      diagnostics
          .error(DiagnosticCode::WrongArguments, decl.collectiveRange,
                 "an argument for '" + std::string(param.name) + "' is missing")
          .note(param.nameRange, "declared here");
  }
}

void Resolver::bindArguments(AlgorithmDecl &decl) {
  // By position or by name, as in calls of most languages.
  const std::vector<Param> &params = decl.collective->params;
  decl.collectiveArguments.assign(params.size(), nullptr);
  for (size_t i = 0; i < decl.arguments.size(); ++i) {
    const Argument &argument = decl.arguments[i];
    size_t index = i;
    std::vector<std::string_view> names;
    for (size_t k = 0; k < params.size(); ++k)
      names.push_back(params[k].name);
    // By name: where it stands does not matter.
    if (!argument.name.empty())
      for (index = 0; index < params.size() && params[index].name != argument.name;)
        ++index;
    if (index < params.size() && !argument.name.empty())
      noteUse(argument.nameRange, params[index].nameRange);
    // Three mistakes: too many, unknown, given twice.
    if (index >= params.size() && argument.name.empty())
      diagnostics
          .error(DiagnosticCode::WrongArguments, argument.expr->range,
                 "'" + std::string(decl.collectiveName) + "' has only " +
                     std::to_string(params.size()) + " parameters")
          .note(decl.collective->nameRange, "declared here");
    else if (index >= params.size())
      unknownName(argument.name, argument.nameRange, "parameter of the collective", names);
    else if (decl.collectiveArguments[index])
      diagnostics.error(DiagnosticCode::WrongArguments, argument.expr->range,
                        "'" + std::string(params[index].name) + "' is given twice");
    else
      decl.collectiveArguments[index] = argument.expr;
  }
}

void Resolver::resolveBody(std::vector<Stmt *> &body, SourceRange block) {
  size_t mark = scope.open();
  ++blockDepth;
  for (Stmt *statement : body)
    resolveStatement(*statement);
  --blockDepth;
  warnOfUnused(mark);
  closeScope(mark, block);
}

void Resolver::warnOfUnused(size_t mark) {
  // What others have written is not the business of who imports it.
  bool isOfMainFile = !scope.all().empty() && scope.all().back().range.file == program.main().file;
  for (size_t i = mark; i < scope.all().size() && isOfMainFile; ++i) {
    const Variable &variable = scope.all()[i];
    if (variable.isUsed || variable.type == Type::Error)
      continue;
    if (variable.type == Type::Buffer)
      diagnostics.error(DiagnosticCode::UnusedScratch, variable.range,
                        "the scratch '" + std::string(variable.name) + "' is never written");
    else
      diagnostics.error(DiagnosticCode::UnusedName, variable.range,
                        "'" + std::string(variable.name) + "' is never used");
  }
}

void Resolver::resolveStatement(Stmt &statement) {
  // After many errors there is nothing to gain.
  if (diagnostics.isFull())
    return;
  // Topologies have some statements that programs do not, and the other way round.
  if (inTopology)
    checkPlaced(statement);
  // Bodies are scopes of their own.
  switch (statement.kind) {
  case StmtKind::Let:
  case StmtKind::Var:
    return resolveBinding(statement);
  case StmtKind::Assign:
    return resolveAssign(statement);
  case StmtKind::For: {
    size_t mark = scope.open();
    resolveGenerators(statement.generators);
    resolveBody(statement.body, statement.block);
    return closeScope(mark, statement.block);
  }
  case StmtKind::If:
    want(statement.expr, Type::Bool, "the condition");
    resolveBody(statement.body, statement.block);
    return resolveBody(statement.elseBody, statement.elseBlock);
  case StmtKind::Assert:
    return want(statement.expr, Type::Bool, "what is asserted");
  case StmtKind::Scratch:
    return resolveScratch(statement);
  case StmtKind::Return:
    return resolveReturn(statement);
  case StmtKind::Hints:
    resolveHints(*statement.hints);
    return resolveBody(statement.body, statement.block);
  case StmtKind::When:
    return resolveWhen(statement);
  case StmtKind::Expression:
    return resolveEffect(statement);
  case StmtKind::Topology:
    return resolveTopologyItem(*statement.item);
  }
}

void Resolver::resolveHints(const HintArguments &hints) {
  if (hints.channel)
    want(hints.channel, Type::Int, "the channel");
  if (hints.parallel)
    want(hints.parallel, Type::Int, "the number of parts");
  for (Expr *block : {hints.sendBlock, hints.recvBlock})
    if (block)
      want(block, Type::Int, "the thread block");
}

void Resolver::resolveWhen(Stmt &statement) {
  if (blockDepth != 1 || inVersion)
    diagnostics.error(DiagnosticCode::MisplacedDeclaration, statement.range,
                      "versions stand directly in the body of an algorithm");
  // A version is a body of its own: it may declare scratch.
  --blockDepth;
  inVersion = true;
  resolveBody(statement.body, statement.block);
  inVersion = false;
  ++blockDepth;
}

void Resolver::resolveBinding(Stmt &statement) {
  // A variable holds a value; some expressions have none.
  Type type = statement.expr ? resolveExpr(statement.expr) : Type::Error;
  if (type == Type::Location)
    type = Type::Chunk; // a variable holds what was read
  if (type == Type::Void || type == Type::Buffer || type == Type::Row || type == Type::Origin) {
    diagnostics.error(DiagnosticCode::WrongType, statement.expr->range,
                      std::string("a variable holds an int, a bool, a chunk or a list; this is ") +
                          (type == Type::Void     ? "nothing"
                           : type == Type::Origin ? "an origin: ask for its '.rank' or '.index'"
                           : type == Type::Row    ? "a buffer of one rank; add '[chunk]'"
                                                  : "a buffer; add '[rank][chunk]'"));
    type = Type::Error;
  }
  NameKind kind = statement.kind == StmtKind::Var ? NameKind::Var : NameKind::Let;
  Variable *variable = declare(statement.name, statement.nameRange, type, kind);
  statement.slot = slotOf(variable);
  if (variable && statement.expr)
    showFrom(*variable, statement.expr->range.end);
}

void Resolver::resolveAssign(Stmt &statement) {
  // Only what was declared with `var` can be assigned to.
  Variable *variable = scope.find(statement.name);
  if (!variable) {
    std::vector<std::string_view> names;
    for (const Variable &known : scope.all())
      if (known.isAssignable())
        names.push_back(known.name);
    unknownName(statement.name, statement.nameRange, "variable", std::move(names));
    resolveExpr(statement.expr);
    return;
  }
  noteUse(statement.nameRange, variable->range);
  if (!variable->isAssignable())
    diagnostics
        .error(DiagnosticCode::NotAssignable, statement.nameRange,
               "'" + std::string(statement.name) +
                   "' cannot be assigned to: it is not declared with 'var'")
        .note(variable->range, "declared here");
  statement.slot = variable->slot;
  want(statement.expr, variable->type, "the assigned value");
}

void Resolver::resolveScratch(Stmt &statement) {
  // The rank is a variable in the number of slots only.
  size_t mark = scope.open();
  if (statement.rankRange.isValid())
    statement.rankSlot = slotOf(
        declare(sources.text(statement.rankRange), statement.rankRange, Type::Int, NameKind::Rank));
  want(statement.expr, Type::Int, "the number of slots");
  closeScope(mark, statement.range);
  // Scratch is allocated once for the whole run, so that it cannot be declared in a loop or
  // function.
  if (function || blockDepth != 1)
    diagnostics.error(DiagnosticCode::MisplacedDeclaration, statement.range,
                      "a scratch is declared directly in the body of an algorithm");
  statement.slot =
      slotOf(declare(statement.name, statement.nameRange, Type::Buffer, NameKind::Scratch));
}

void Resolver::resolveReturn(Stmt &statement) {
  // Outside of a function there is nothing to return to.
  Type wanted = function ? function->result : Type::Void;
  if (wanted != Type::Void && statement.expr)
    return want(statement.expr, wanted, "the returned value");
  if (statement.expr) {
    resolveExpr(statement.expr);
    diagnostics.error(DiagnosticCode::WrongType, statement.expr->range,
                      function ? "this function returns nothing; give it a result with '-> type'"
                               : "an algorithm returns nothing");
  } else if (wanted != Type::Void) {
    diagnostics
        .error(DiagnosticCode::WrongType, statement.range,
               "this function returns a value of type '" + std::string(nameOf(wanted)) + "'")
        .note(function->resultRange, "declared here");
  }
}

void Resolver::resolveEffect(Stmt &statement) {
  resolveExpr(statement.expr);
  ExprKind kind = statement.expr->kind;
  bool hasEffect = kind == ExprKind::Copy || kind == ExprKind::Reduce || kind == ExprKind::Call;
  if (!hasEffect && statement.expr->type != Type::Error)
    diagnostics.error(DiagnosticCode::UnusedResult, statement.range,
                      "this statement does nothing: its value is not used");
}

void Resolver::resolveGenerators(Generators &generators) {
  // From left to right: bounds of later variables may use earlier ones.
  for (Generator &generator : generators.list) {
    if (generator.last) {
      want(generator.first, Type::Int, "the lower bound");
      want(generator.last, Type::Int, "the upper bound");
    } else {
      // A list: the variable has the type of its elements.
      Type list = resolveExpr(generator.first);
      generator.type = elementOf(list);
      if (!isList(list) && list != Type::Error)
        diagnostics.error(DiagnosticCode::WrongType, generator.first->range,
                          "a loop runs over a range 'first .. last' or a list; this is of type '" +
                              std::string(nameOf(list)) + "'");
    }
    Variable *variable =
        declare(generator.name, generator.nameRange, generator.type, NameKind::Loop);
    generator.slot = slotOf(variable);
    if (variable)
      showFrom(*variable, generator.range.end);
  }
  // The condition sees all of them.
  if (generators.where)
    want(generators.where, Type::Bool, "the condition of 'where'");
}

} // namespace occl::frontend
