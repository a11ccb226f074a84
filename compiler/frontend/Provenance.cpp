#include "compiler/frontend/Provenance.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

namespace occl::frontend {
namespace {

/// The first element that occurs more often in `a` than in `b`; both are sorted.
const Contribution *firstExcess(const std::vector<Contribution> &a,
                                const std::vector<Contribution> &b) {
  auto other = b.begin();
  for (const Contribution &element : a) {
    while (other != b.end() && *other < element)
      ++other;
    if (other == b.end() || element < *other)
      return &element;
    ++other;
  }
  return nullptr;
}

bool contains(const std::vector<Contribution> &contents, const Contribution &wanted) {
  return std::binary_search(contents.begin(), contents.end(), wanted);
}

} // namespace

void Provenance::sliceBackwards(LocationId output) {
  // Bounds the time for hostile programs, whose slices may be long and their contents large.
  constexpr size_t kMaxSteps = 1u << 16;
  std::unordered_set<LocationId> wanted{cellOf(output)};
  for (size_t i = trace.numEvents(); i-- > 0 && steps.size() < kMaxSteps;) {
    const Event &event = trace.event(i);
    std::span<const LocationId> sources = trace.sourcesOf(event);
    bool isIdentity = sources.size() == 1 && cellOf(sources[0]) == cellOf(event.destination);
    for (uint32_t offset = 0; offset < event.count && !isIdentity; ++offset)
      if (wanted.erase(cellOf(event.destination + offset)))
        steps.push_back({&event, offset});
    // The sources are read before the range is written.
    for (auto step = steps.rbegin(); step != steps.rend() && step->event == &event; ++step)
      for (LocationId source : sources)
        wanted.insert(cellOf(source + step->offset));
  }
  std::reverse(steps.begin(), steps.end());
}

Provenance::Contents Provenance::contentOf(LocationId location) const {
  auto known = cells.find(cellOf(location));
  if (known != cells.end())
    return known->second;
  Place place = layout.placeOf(location);
  if (place.buffer == BufferKind::Input)
    return contentAtEntry(place);
  // In place, an output that nobody has written yet is an input by another name.
  int64_t index = static_cast<int64_t>(place.index) - layout.inPlaceOffsets()[place.rank];
  bool isInput = inPlace && place.buffer == BufferKind::Output && index >= 0 &&
                 index < layout.inputChunks()[place.rank];
  if (!isInput)
    return {};
  return contentAtEntry({BufferKind::Input, 0, place.rank, static_cast<uint32_t>(index)});
}

Provenance::Contents Provenance::contentAtEntry(Place input) const {
  if (!equalInput.empty())
    input = layout.placeOf(equalInput[layout.first(input)]);
  return {{input.rank, input.index}};
}

void Provenance::replay() {
  // A program can double a content with every statement; nobody needs more to see the mistake.
  constexpr size_t kMaxContents = 1u << 16;
  for (const Step &step : steps) {
    Contents result;
    for (LocationId source : trace.sourcesOf(*step.event)) {
      Contents part = contentOf(source + step.offset);
      result.insert(result.end(), part.begin(), part.end());
      result.resize(std::min(result.size(), kMaxContents));
    }
    std::sort(result.begin(), result.end());
    results.push_back(result);
    cells[cellOf(step.event->destination + step.offset)] = std::move(result);
  }
}

std::string Provenance::describe(const Contribution &contribution) const {
  return layout.describe({BufferKind::Input, 0, contribution.rank, contribution.chunk});
}

void Provenance::noteHistory(const Contribution &contribution, Diagnostic &diagnostic) const {
  constexpr size_t kMaxArrivals = 3;
  size_t arrivals = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    auto [first, last] = std::equal_range(results[i].begin(), results[i].end(), contribution);
    if (first == last)
      continue;
    const Event &event = *steps[i].event;
    Place place = layout.placeOf(event.destination + steps[i].offset);
    bool isRepetition = last - first > 1;
    if (isRepetition || ++arrivals <= kMaxArrivals)
      diagnostic.note(
          event.expr->range,
          (isRepetition ? "from here on it counts more than once, in " : "it came here, to ") +
              layout.describe(place) + trace.describe(event.context));
    if (isRepetition)
      return;
  }
}

void Provenance::noteReduction(Diagnostic &diagnostic) const {
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    if (step->event->numSources > 1 && !(step->event->expr->range == diagnostic.range)) {
      diagnostic.note(step->event->expr->range,
                      "it was reduced here" + trace.describe(step->event->context));
      return;
    }
}

std::vector<Contribution> Provenance::contentsOf(LocationId location) {
  sliceBackwards(location);
  replay();
  return contentOf(location);
}

void Provenance::report(LocationId output, std::vector<Contribution> wanted, const Setting &setting,
                        DiagnosticEngine &diagnostics) {
  std::sort(wanted.begin(), wanted.end());
  Contents actual = contentsOf(output);
  const Contribution *extra = firstExcess(actual, wanted);
  const Contribution *missing = firstExcess(wanted, actual);
  DiagnosticCode code = DiagnosticCode::OutputNotWritten;
  std::string message = layout.describe(layout.placeOf(output));
  if (actual.empty()) {
    message += " is never written";
  } else if (missing) {
    code = DiagnosticCode::MissingContribution;
    message += " lacks the contribution of rank " + std::to_string(missing->rank) + ", " +
               describe(*missing) + (extra ? ", and holds " + describe(*extra) + " instead" : "");
  } else if (extra && contains(wanted, *extra)) {
    code = DiagnosticCode::RepeatedContribution;
    message += " holds the contribution of rank " + std::to_string(extra->rank) + ", " +
               describe(*extra) + ", more than once";
  } else if (extra) {
    code = DiagnosticCode::ForeignContribution;
    message += " holds a contribution that does not belong there, " + describe(*extra);
  }
  const Event *last = steps.empty() ? nullptr : steps.back().event;
  Diagnostic &diagnostic =
      diagnostics.error(code, last ? last->expr->range : setting.algorithm,
                        setting.mode + message + (last ? trace.describe(last->context) : ""));
  if (extra)
    noteHistory(*extra, diagnostic);
  else if (missing)
    noteReduction(diagnostic);
  diagnostic.note(setting.requirement, "required here" + setting.context);
}

std::vector<uint32_t> freeVariables(const Expr &root) {
  std::vector<uint32_t> slots, bound;
  std::function<void(const Expr &)> visit = [&](const Expr &expr) {
    for (const Generator &generator : expr.generators.list) {
      bound.push_back(generator.slot);
      visit(*generator.first);
      if (generator.last)
        visit(*generator.last);
    }
    if (expr.kind == ExprKind::Variable)
      slots.push_back(expr.slot);
    for (const Expr *child : {expr.a, expr.b, expr.c, expr.d, expr.generators.where})
      if (child)
        visit(*child);
    for (const Expr *operand : expr.operands)
      visit(*operand);
  };
  visit(root);
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  std::erase_if(slots, [&](uint32_t slot) {
    return std::find(bound.begin(), bound.end(), slot) != bound.end();
  });
  return slots;
}

} // namespace occl::frontend
