#include "compiler/frontend/memory/Provenance.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

namespace occl::frontend {
namespace {

/// The first contribution that counts more often in `a` than in `b`; both are sorted.
const Contribution *firstExcess(const std::vector<Share> &a, const std::vector<Share> &b) {
  // A merge of two sorted lists.
  auto other = b.begin();
  for (const Share &share : a) {
    while (other != b.end() && other->contribution < share.contribution)
      ++other;
    bool isThere = other != b.end() && other->contribution == share.contribution;
    if (!isThere || other->times < share.times)
      return &share.contribution;
  }
  return nullptr;
}

bool contains(const std::vector<Share> &contents, const Contribution &wanted) {
  return std::any_of(contents.begin(), contents.end(),
                     [&](const Share &share) { return share.contribution == wanted; });
}

/// Sorts, and adds up what is of one contribution. A program can double a value with every
/// statement, so numbers end somewhere.
void normalize(std::vector<Share> &shares) {
  // Saturates: the exact number does not matter beyond that.
  constexpr uint64_t kMaxTimes = uint64_t{1} << 40;
  std::sort(shares.begin(), shares.end(),
            [](const Share &a, const Share &b) { return a.contribution < b.contribution; });
  size_t kept = 0;
  for (const Share &share : shares) {
    if (kept > 0 && shares[kept - 1].contribution == share.contribution)
      shares[kept - 1].times = std::min(shares[kept - 1].times + share.times, kMaxTimes);
    else
      shares[kept++] = share;
  }
  shares.resize(kept);
}

} // namespace

/// Bounds the time for hostile programs, whose slices may be long and their contents large.
bool Provenance::spend(uint64_t amount) {
  constexpr uint64_t kMaxWork = uint64_t{1} << 26;
  lookedAt += amount;
  cut = cut || lookedAt > kMaxWork;
  return !cut;
}

void Provenance::sliceBackwards(LocationId output) {
  // From the output backwards, only what leads to it: a program moves millions of chunks, and a
  // message is about one.
  std::unordered_set<LocationId> wanted{cellOf(output)};
  for (size_t i = trace.numEvents(); i-- > 0 && !wanted.empty();) {
    const Event &event = trace.event(i);
    // Out of budget: what was found so far is all that will be said.
    if (!spend(event.count))
      break;
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
  if (std::optional<Contribution> contribution = contentAtEntry(location))
    return {{*contribution}};
  return {};
}

std::optional<Contribution> Provenance::contentAtEntry(LocationId location) const {
  Place place = layout.placeOf(location);
  if (place.buffer == BufferKind::Input)
    return sameAs(place);
  // In place, an output that nobody has written yet is an input by another name.
  int64_t index = static_cast<int64_t>(place.index) - layout.inPlaceOffsets()[place.rank];
  bool isInput = inPlace && place.buffer == BufferKind::Output && index >= 0 &&
                 index < layout.inputChunks()[place.rank];
  if (!isInput)
    return std::nullopt;
  return sameAs({BufferKind::Input, 0, place.rank, static_cast<uint32_t>(index)});
}

Contribution Provenance::sameAs(Place input) const {
  if (!equalInput.empty())
    input = layout.placeOf(equalInput[layout.first(input)]);
  return {input.rank, input.index};
}

void Provenance::replay() {
  // Forwards again, over the steps that matter, with the exact contents of each location.
  for (const Step &step : steps) {
    Contents result;
    for (LocationId source : trace.sourcesOf(*step.event)) {
      Contents part = contentOf(source + step.offset);
      result.insert(result.end(), part.begin(), part.end());
      if (!spend(part.size()))
        return;
    }
    normalize(result);
    cells[cellOf(step.event->destination + step.offset)] = std::move(result);
  }
}

std::string Provenance::describe(const Contribution &contribution) const {
  return layout.describe({BufferKind::Input, 0, contribution.rank, contribution.chunk});
}

void Provenance::noteHistory(const Contribution &contribution, Diagnostic &diagnostic) const {
  constexpr size_t kMaxArrivals = 3;
  size_t arrivals = 0;
  std::unordered_map<LocationId, bool> holds; // of what was written
  // Follows one contribution through the steps: where it arrived, and where it came to be counted
  // more than once.
  for (const Step &step : steps) {
    const Event &event = *step.event;
    uint64_t times = 0;
    for (LocationId source : trace.sourcesOf(event)) {
      auto known = holds.find(cellOf(source + step.offset));
      // What was written is known; what was not still holds what it held at entry.
      times += known != holds.end() ? known->second
                                    : contentAtEntry(source + step.offset) == contribution;
    }
    holds[cellOf(event.destination + step.offset)] = times > 0;
    if (times == 0)
      continue;
    Place place = layout.placeOf(event.destination + step.offset);
    bool isRepetition = times > 1;
    if (isRepetition || ++arrivals <= kMaxArrivals)
      diagnostic.note(
          event.expr->range,
          (isRepetition ? "from here on it counts more than once, in " : "it came here, to ") +
              layout.describe(place) + trace.describe(event.context));
    // From the first repetition on everything is repeated.
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

std::vector<Share> Provenance::contentsOf(LocationId location) {
  sliceBackwards(location);
  if (!cut)
    replay();
  return contentOf(location);
}

Diagnostic &Provenance::report(LocationId output, const std::vector<Contribution> &contributions,
                               const Setting &setting, DiagnosticEngine &diagnostics) {
  // The exact contents against what was promised: what is too much, and what is missing.
  Contents wanted;
  for (const Contribution &contribution : contributions)
    wanted.push_back({contribution});
  normalize(wanted);
  Contents actual = contentsOf(output);
  const Contribution *extra = firstExcess(actual, wanted);
  const Contribution *missing = firstExcess(wanted, actual);
  // The kinds of mistakes, the most telling first. Both may apply: something is there instead of
  // something else.
  DiagnosticCode code = DiagnosticCode::OutputNotWritten;
  std::string message = layout.describe(layout.placeOf(output));
  if (cut) {
    code = DiagnosticCode::MissingContribution;
    message += " does not hold what it has to; too much went there to say what is missing";
    extra = missing = nullptr;
  } else if (actual.empty()) {
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
  // The place is the last statement that wrote there.
  const Event *last = steps.empty() ? nullptr : steps.back().event;
  Diagnostic &diagnostic =
      diagnostics.error(code, last ? last->expr->range : setting.algorithm,
                        setting.mode + message + (last ? trace.describe(last->context) : ""));
  // How the wrong contribution came there; of a missing one, which reduction should have had it.
  if (extra)
    noteHistory(*extra, diagnostic);
  else if (missing)
    noteReduction(diagnostic);
  return diagnostic.note(setting.requirement, "required here" + setting.context);
}

std::vector<uint32_t> freeVariables(const Expr &root) {
  // Variables that the expression uses and does not bind itself: what its value depends on.
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
  // What a loop inside of the expression binds does not come from outside.
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  std::erase_if(slots, [&](uint32_t slot) {
    return std::find(bound.begin(), bound.end(), slot) != bound.end();
  });
  return slots;
}

} // namespace occl::frontend
