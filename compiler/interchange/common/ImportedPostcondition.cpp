#include "compiler/interchange/common/ImportedPostcondition.h"

#include "compiler/frontend/elaborate/Elaborate.h"
#include "compiler/frontend/memory/NullChunkSink.h"
#include "compiler/frontend/sema/Program.h"
#include "compiler/frontend/syntax/Parser.h"
#include "support/suggestion.h"

#include <algorithm>
#include <map>

namespace occl::interchange {

using namespace frontend;

namespace {

/// The algorithm that the promise is taken from. No word of the language starts like this.
constexpr const char *kAlgorithm = "imported__algorithm";

class Instantiation {
public:
  Instantiation(const PostconditionRequest &request, SourceManager &sources,
                DiagnosticEngine &diagnostics)
      : request(request), sources(sources), diagnostics(diagnostics) {}

  std::optional<ProgramInfo> run(uint32_t ranks, uint32_t chunks) {
    // What the file says of itself; -D may say otherwise.
    values = {{"ranks", std::to_string(ranks)}, {"chunks", std::to_string(chunks)}};
    if (!findCollective() || !readDefines() || !hasAllValues())
      return std::nullopt;
    // The declarations of the collective's file, with an algorithm behind that implements it and
    // does nothing: then the frontend instantiates the postcondition as for any program.
    FileId file = sources.addText(path.empty() ? "--implements" : path, text + algorithmText());
    Program program = loadProgram(sources, file, request.importPaths, diagnostics);
    resolve(program, sources, diagnostics);
    if (diagnostics.hasErrors())
      return std::nullopt;
    const Module &module = program.main();
    NullChunkSink sink;
    ElaborationOptions options;
    options.promiseOnly = true;
    return elaborate(program, module.algorithms.back(), options, sources, sink, diagnostics);
  }

private:
  struct Parameter {
    std::string name;
    SourceRange place;
    bool hasDefault;
  };

  bool fail(const std::string &message) {
    diagnostics.error(DiagnosticCode::ImportWrongPromise, {}, message);
    return false;
  }

  /// Sets path, text and name, and the parameters that may be defined.
  bool findCollective() {
    // "name" is a standard collective, "file.coll" the only one of a file, "file.coll:name" one of
    // several.
    std::string_view argument = request.collective;
    size_t end = argument.rfind(".coll:");
    bool isWhole = argument.ends_with(".coll");
    if (!isWhole && end == argument.npos) {
      name = argument;
      return findIn(std::string(preludeText()));
    }
    path = isWhole ? argument : argument.substr(0, end + 5);
    if (!isWhole)
      name = argument.substr(end + 6);
    std::string reason;
    std::optional<FileId> file = sources.addFile(path, reason);
    if (!file) {
      diagnostics.error(DiagnosticCode::UnreadableFile, {},
                        "cannot read '" + path + "': " + reason);
      return false;
    }
    text = sources.text(*file);
    return findIn(text);
  }

  /// Looks among the collectives that `declarations` has itself, not by import.
  bool findIn(const std::string &declarations) {
    // Parsed, not resolved: names and parameters are all that is needed here.
    FileId file = sources.addText(path.empty() ? "<prelude>" : path, declarations);
    std::unique_ptr<Module> module = parse(sources, file, diagnostics);
    if (diagnostics.hasErrors())
      return false;
    std::vector<std::string_view> names;
    for (const CollectiveDecl &collective : module->collectives) {
      // Its parameters, for -D.
      if (collective.name == name || (name.empty() && module->collectives.size() == 1)) {
        name = collective.name;
        for (const Param &param : collective.params)
          parameters.push_back(
              {std::string(param.name), param.nameRange, param.defaultValue != nullptr});
        return true;
      }
      names.push_back(collective.name);
    }
    std::string where = path.empty() ? "the standard collectives" : "'" + path + "'";
    // What there is to choose from, or what could have been meant.
    return fail(name.empty() ? where + " declares " + std::to_string(names.size()) +
                                   " collectives; choose one with --implements " + path + ":name"
                             : "there is no collective '" + name + "' in " + where +
                                   support::didYouMean(support::suggest(name, names)));
  }

  bool readDefines() {
    // Values are put into the text of a program, so that anything but numbers, lists and truth
    // values is refused: it could be a program.
    for (const std::string &define : request.defines) {
      size_t equals = std::min(define.find('='), define.size());
      std::string key = define.substr(0, equals);
      if (equals == define.size())
        return fail("-D " + define + ": a definition is written -D name=value");
      std::vector<std::string_view> names;
      for (const Parameter &parameter : parameters)
        names.push_back(parameter.name);
      if (std::find(names.begin(), names.end(), key) == names.end())
        return fail("-D " + define + ": the collective '" + name + "' has no parameter '" + key +
                    "'" + support::didYouMean(support::suggest(key, names)));
      std::string value = define.substr(equals + 1);
      size_t sign = value.starts_with('-') ? 1 : 0;
      bool isNumber =
          value.size() > sign && value.find_first_not_of("0123456789", sign) == std::string::npos;
      bool isList = value.starts_with('[') &&
                    value.find_first_not_of("0123456789-,.[] ") == std::string::npos;
      if (!isNumber && !isList && value != "true" && value != "false")
        return fail("-D " + define + ": '" + value + "' is no integer, list, true or false");
      values[key] = value;
    }
    return true;
  }

  bool hasAllValues() {
    for (const Parameter &parameter : parameters) {
      if (parameter.hasDefault || values.contains(parameter.name))
        continue;
      diagnostics.error(DiagnosticCode::MissingValue, parameter.place,
                        "the parameter '" + parameter.name + "' has no value; give one with -D " +
                            parameter.name + "=<value>");
      return false;
    }
    return true;
  }

  std::string algorithmText() const {
    std::string arguments;
    for (const Parameter &parameter : parameters)
      if (auto value = values.find(parameter.name); value != values.end())
        arguments += (arguments.empty() ? "" : ", ") + parameter.name + " = " + value->second;
    return "\nalgorithm " + std::string(kAlgorithm) + "() implements " + name + "(" + arguments +
           ") {}\n";
  }

  const PostconditionRequest &request;
  SourceManager &sources;
  DiagnosticEngine &diagnostics;
  std::string path, text, name;
  std::vector<Parameter> parameters;
  std::map<std::string, std::string> values;
};

} // namespace

std::optional<ProgramInfo> instantiatePostcondition(const PostconditionRequest &request,
                                                    uint32_t ranks, uint32_t chunks,
                                                    SourceManager &sources,
                                                    DiagnosticEngine &diagnostics) {
  return Instantiation(request, sources, diagnostics).run(ranks, chunks);
}

} // namespace occl::interchange
