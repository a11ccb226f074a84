// What chunks and places can be asked: where they lie, and which inputs they consist of.
#include "compiler/frontend/elaborate/Elaborator.h"
#include "compiler/frontend/memory/Provenance.h"

#include <algorithm>

namespace occl::frontend {

bool Elaborator::evaluateSubject(const Expr &expr, Place &out) {
  if (expr.type == Type::Location)
    return evaluatePlace(expr, out);
  Chunk chunk;
  bool good = evaluateChunk(expr, chunk);
  out = chunk.place;
  return good;
}

bool Elaborator::evaluateContent(const Expr &expr, Place &out) {
  // A place is asked for what it holds now; a chunk for what it held when it was read, which it
  // must still do.
  Chunk chunk;
  bool isPlace = expr.type == Type::Location;
  if (isPlace ? !evaluatePlace(expr, out) : !evaluateChunk(expr, chunk))
    return false;
  if (!isPlace)
    out = chunk.place;
  // What holds in one mode holds in the other: whatever is fresh in both holds the same in both.
  return isPlace ? checkReadable(out, expr) : checkFresh(chunk, expr);
}

bool Elaborator::evaluateMember(const Expr &expr, int64_t &out) {
  // Lists have a length; origins, chunks and places the rest.
  auto member = static_cast<Member>(expr.value);
  if (member == Member::Length) {
    ListRef holder;
    const List *list = findList(*expr.a, holder);
    out = list ? static_cast<int64_t>(list->size()) : 0;
    return list != nullptr;
  }
  if (expr.a->type == Type::Origin) {
    Contribution origin;
    if (!evaluateOrigin(*expr.a->a, origin))
      return false;
    out = member == Member::Rank ? origin.rank : origin.chunk;
    return true;
  }
  // How many inputs are summed up in it.
  if (member == Member::Contributions)
    return evaluateContributions(*expr.a, out);
  Place place;
  if (!evaluateSubject(*expr.a, place))
    return false;
  out = member == Member::Rank ? place.rank : member == Member::Index ? place.index : place.count;
  return true;
}

bool Elaborator::evaluateOrigin(const Expr &expr, Contribution &out) {
  Place place;
  if (!evaluateContent(expr, place))
    return false;
  // Every chunk of the value has one input as its content, and these lie side by side: only then
  // the value as a whole has an origin.
  LocationId first = layout.first(place);
  for (uint32_t i = 0; i < place.count; ++i) {
    const ContributionSum &content = memories[0].content(first + i);
    if (content.count != 1) {
      error(DiagnosticCode::SeveralOrigins, expr.range,
            layout.describe(layout.placeOf(first + i)) + " is the reduction of " +
                std::to_string(content.count) +
                " contributions, so it has no origin; '.has(rank, chunk)' asks for one of them");
      return false;
    }
    Contribution origin = soleContribution(content);
    if (i == 0)
      out = origin;
    if (origin == Contribution{out.rank, out.chunk + i})
      continue;
    error(DiagnosticCode::SeveralOrigins, expr.range,
          "the chunks of this value come from different places: " +
              layout.describe({BufferKind::Input, 0, out.rank, out.chunk}) + " and " +
              layout.describe({BufferKind::Input, 0, origin.rank, origin.chunk}) +
              "; ask for the origin of one of them");
    return false;
  }
  return true;
}

bool Elaborator::evaluateContributions(const Expr &expr, int64_t &out) {
  Place place;
  if (!evaluateContent(expr, place))
    // All chunks must have the same number, or there is no answer for the value.
    return false;
  LocationId first = layout.first(place);
  out = memories[0].content(first).count;
  for (uint32_t i = 1; i < place.count; ++i) {
    int64_t other = memories[0].content(first + i).count;
    if (other == out)
      continue;
    error(DiagnosticCode::SeveralOrigins, expr.range,
          "the chunks of this value have different numbers of contributions: " +
              std::to_string(out) + " and " + std::to_string(other));
    return false;
  }
  return true;
}

bool Elaborator::evaluateHas(const Expr &expr, int64_t &out) {
  Place place;
  int64_t rank, chunk;
  if (!evaluateContent(*expr.a, place) || !evaluateScalar(*expr.operands[0], rank) ||
      !evaluateScalar(*expr.operands[1], chunk))
    return false;
  LocationId first = layout.first(place);
  out = 1;
  for (uint32_t i = 0; i < place.count && out; ++i) {
    // The sums tell sets apart, but not what is in them: that takes a look at the whole history.
    Provenance history(layout, trace, memories[0].isInPlace());
    std::vector<Share> contents = history.contentsOf(first + i);
    if (!spendSteps(history.isCut() ? maxSteps + 1 : history.work() + 1, expr.range))
      return false;
    out = std::any_of(contents.begin(), contents.end(), [&](const Share &share) {
      return share.contribution.rank == rank && share.contribution.chunk == chunk + i;
    });
  }
  return true;
}

} // namespace occl::frontend
