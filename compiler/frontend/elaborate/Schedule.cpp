// What a program asks of its schedule: versions for ranges of sizes, instances, and hints.
#include "compiler/frontend/elaborate/Elaborator.h"

#include "plan/model/limits.h"

#include <algorithm>

namespace occl::frontend {
namespace {

std::string describeSizes(uint64_t first, uint64_t last) {
  if (last == kUnboundedBytes)
    return std::to_string(first) + " bytes and more";
  return std::to_string(first) + " to " + std::to_string(last) + " bytes";
}

} // namespace

bool Elaborator::chooseVersion() {
  // Sizes of all versions are evaluated, also of those that are not chosen: overlaps are mistakes
  // of the program, whatever is compiled.
  for (const VersionDecl &candidate : algorithm.versions)
    if (!evaluateSizes(candidate))
      return false;
  // Clauses of the algorithm hold for all versions; those of the version override them.
  if (!selectVersion() || !applyClauses(algorithm.clauses))
    return false;
  if (!algorithm.versions.empty()) {
    info.minBytes = versionSizes[version].first;
    info.maxBytes = versionSizes[version].last;
    info.numVersions = algorithm.versions.size();
    if (!applyClauses(algorithm.versions[version].clauses))
      return false;
  }
  // Instances are parts of everything: the hint around all statements.
  hints.parallel = static_cast<int32_t>(info.instances);
  return true;
}

bool Elaborator::evaluateSizes(const VersionDecl &candidate) {
  // "first .. last" without the end itself, as ranges in the language; without an end there is no
  // largest size.
  int64_t first, last = 0;
  if (!evaluateScalar(*candidate.first, first) ||
      (candidate.last && !evaluateScalar(*candidate.last, last)))
    return false;
  if (first < 0 || (candidate.last && last <= first)) {
    error(DiagnosticCode::BadSizes, candidate.range,
          first < 0 ? "sizes are not negative: " + std::to_string(first)
                    : "there is no size from " + std::to_string(first) + " to below " +
                          std::to_string(last));
    return false;
  }
  Sizes sizes{static_cast<uint64_t>(first),
              candidate.last ? static_cast<uint64_t>(last) - 1 : kUnboundedBytes};
  // Against each version before.
  for (size_t i = 0; i < versionSizes.size(); ++i) {
    uint64_t low = std::max(versionSizes[i].first, sizes.first);
    uint64_t high = std::min(versionSizes[i].last, sizes.last);
    if (low > high)
      continue;
    error(DiagnosticCode::OverlappingVersions, candidate.range,
          "two versions are for " + describeSizes(low, high))
        .note(algorithm.versions[i].range, "the other version");
    return false;
  }
  versionSizes.push_back(sizes);
  return true;
}

bool Elaborator::selectVersion() {
  // Without versions there is one, for all sizes.
  if (algorithm.versions.empty())
    return true;
  version = std::min(options.version, versionSizes.size() - 1);
  // By its number, or, if a size is given, the one that is for it.
  if (!options.bytes)
    return true;
  auto wanted = std::find_if(versionSizes.begin(), versionSizes.end(), [&](const Sizes &sizes) {
    return sizes.first <= *options.bytes && *options.bytes <= sizes.last;
  });
  version = static_cast<size_t>(wanted - versionSizes.begin());
  if (wanted != versionSizes.end())
    return true;
  Diagnostic &diagnostic = error(DiagnosticCode::NoVersion, algorithm.nameRange,
                                 "no version of '" + info.name + "' is for " +
                                     std::to_string(*options.bytes) + " bytes");
  // What there is, at each version's place.
  for (size_t i = 0; i < versionSizes.size(); ++i)
    diagnostic.note(algorithm.versions[i].range,
                    "for " + describeSizes(versionSizes[i].first, versionSizes[i].last));
  return false;
}

bool Elaborator::applyClauses(const ScheduleClauses &clauses) {
  if (!clauses.protocol.empty())
    info.protocol = clauses.protocol;
  auto instances = static_cast<int32_t>(info.instances);
  if (!evaluateHint(clauses.instances, 1, plan::limits::kMaxChannels, "instances", instances))
    return false;
  info.instances = static_cast<uint32_t>(instances);
  return true;
}

bool Elaborator::evaluateHint(const Expr *expr, int64_t low, int64_t high, const char *what,
                              int32_t &out) {
  // Nothing asked for: the value stays.
  if (!expr)
    return true;
  int64_t value;
  if (!evaluateScalar(*expr, value))
    return false;
  if (value < low || value > high) {
    error(DiagnosticCode::BadHint, expr->range,
          std::string(what) + " are " + std::to_string(low) + " to " + std::to_string(high) +
              ", not " + std::to_string(value) + valuesIn(*expr));
    return false;
  }
  out = static_cast<int32_t>(value);
  return true;
}

bool Elaborator::evaluateHints(const HintArguments &arguments, Hints &out) {
  // Hints of a block refine those around it.
  constexpr int64_t kMaxParts = plan::limits::kMaxChannels;
  constexpr int64_t kLastBlock = plan::limits::kMaxThreadBlocks - 1;
  out = hints;
  int32_t parts = 1;
  if (!evaluateHint(arguments.channel, 0, plan::limits::kMaxChannels - 1, "channels",
                    out.channel) ||
      !evaluateHint(arguments.parallel, 1, kMaxParts, "numbers of parts", parts) ||
      !evaluateHint(arguments.sendBlock, 0, kLastBlock, "thread blocks", out.sendBlock) ||
      !evaluateHint(arguments.recvBlock, 0, kLastBlock, "thread blocks", out.recvBlock))
    return false;
  // Parts multiply: parallelize(2) in parallelize(3) is six parts.
  if (int64_t{parts} * hints.parallel > kMaxParts) {
    error(DiagnosticCode::BadHint, arguments.parallel->range,
          std::to_string(parts) + " parts in each of the " + std::to_string(hints.parallel) +
              " parts around are more than " + std::to_string(kMaxParts));
    return false;
  }
  out.parallel = parts * hints.parallel;
  // Each aggregate block is a group of its own.
  if (arguments.aggregate)
    out.aggregate = numGroups++;
  return true;
}

void Elaborator::useHints(const Hints &next) {
  hints = next;
  sink.useHints(hints);
}

Elaborator::Flow Elaborator::executeHints(const Stmt &statement) {
  Hints outer = hints, inner;
  if (!evaluateHints(*statement.hints, inner))
    return stopped ? Flow::Stop : Flow::Normal;
  useHints(inner);
  Flow flow = execute(statement.body);
  useHints(outer);
  return flow;
}

} // namespace occl::frontend
