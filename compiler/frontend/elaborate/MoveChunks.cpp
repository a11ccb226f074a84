#include "compiler/frontend/elaborate/Elaborator.h"

#include <algorithm>

namespace occl::frontend {

static constexpr char kCalledInPlace[] = "called in place, ";

std::string Elaborator::modeText(const Memory &memory,
                                 const std::function<bool(const Memory &)> &isAffected) const {
  if (std::all_of(memories.begin(), memories.end(), isAffected))
    return "";
  return memory.isInPlace() ? kCalledInPlace : "called out of place, ";
}

void Elaborator::offerModes(const std::string &mode, Diagnostic &diagnostic) const {
  if (mode == kCalledInPlace && !algorithm.modesRange.isValid())
    diagnostic.note(algorithm.nameRange, "if it is not to be called in place, say 'modes "
                                         "out_of_place' before its body");
}

bool Elaborator::read(const Place &place, const Expr &expr, Chunk &out) {
  if (!checkReadable(place, expr) || !spendOp(expr.range))
    return false;
  out = {place, trace.now(), sink.read(layout.range(place), expr.range)};
  return true;
}

bool Elaborator::checkReadable(const Place &place, const Expr &expr) {
  return spendSteps(place.count, expr.range) && checkDefined(place, expr) &&
         checkWritten(place, expr) && checkAliasedInput(place, expr);
}

bool Elaborator::checkWritten(const Place &place, const Expr &expr) {
  // In each mode that is claimed, every location of the place must have been written, or hold
  // input.
  LocationId first = layout.first(place);
  auto unwritten = [&](const Memory &memory) -> std::optional<LocationId> {
    for (LocationId location = first; location < first + place.count; ++location)
      if (memory.version(location) == kUnwritten)
        return location;
    return std::nullopt;
  };
  for (const Memory &memory : memories) {
    // The message names the mode if only one of them is at fault.
    std::optional<LocationId> location = unwritten(memory);
    if (!location)
      continue;
    error(DiagnosticCode::NeverWritten, expr.range,
          modeText(memory, [&](const Memory &other) { return unwritten(other).has_value(); }) +
              layout.describe(layout.placeOf(*location)) + " is read here, but was never written");
    return false;
  }
  return true;
}

bool Elaborator::checkAliasedInput(const Place &place, const Expr &expr) {
  // If only in place is claimed, the input is just another name of the output.
  if (place.buffer != BufferKind::Input || memories.size() == 1)
    return true;
  LocationId first = layout.first(place);
  // An input chunk that in place is an output, and was written as such, is no longer the input out
  // of place would have.
  for (const Memory &memory : memories) {
    auto [version, location] = memory.latest(first, place.count);
    if (version <= kEntry)
      continue;
    const Event &overwrite = trace.eventOf(version);
    Diagnostic &stale = error(DiagnosticCode::StaleChunk, expr.range,
                              kCalledInPlace + layout.describe(layout.placeOf(location)) +
                                  " no longer holds the input here");
    stale.note(overwrite.expr->range,
               "overwritten here, as " +
                   layout.describe(layout.placeOf(layout.inPlaceAlias(location))) +
                   trace.describe(overwrite.context));
    offerModes(kCalledInPlace, stale);
    return false;
  }
  return true;
}

bool Elaborator::checkFresh(const Chunk &chunk, const Expr &expr) {
  // The value was read at `stamp`; if any of its locations has a later version, it is not what the
  // program thinks it is. Per mode, as in place more is overwritten.
  LocationId first = layout.first(chunk.place);
  for (const Memory &memory : memories) {
    auto [version, location] = memory.latest(first, chunk.place.count);
    if (version <= chunk.stamp)
      continue;
    // The note shows the statement that overwrote it, with the values of its loops.
    const Event &overwrite = trace.eventOf(version);
    auto isStale = [&](const Memory &other) {
      return other.latest(first, chunk.place.count).first > chunk.stamp;
    };
    std::string mode = modeText(memory, isStale);
    Diagnostic &stale =
        error(DiagnosticCode::StaleChunk, expr.range,
              mode + "this chunk is stale: " + layout.describe(layout.placeOf(location)) +
                  " was overwritten after it was read");
    stale.note(overwrite.expr->range, "overwritten here" + trace.describe(overwrite.context));
    offerModes(mode, stale);
    return false;
  }
  return spendSteps(chunk.place.count, expr.range);
}

bool Elaborator::store(std::span<const Operand> operands, Place destination, const Expr &expr,
                       Chunk &out) {
  // A value of n chunks needs n chunks at its destination; an open one takes as many.
  const Place &source = operands[0].chunk.place;
  if (!fitDestination(destination, source.count, expr))
    return false;
  // A copy of a place onto itself is no operation.
  bool isIdentity =
      operands.size() == 1 && layout.overlap(source, destination, false) == Layout::Overlap::Same;
  if (isIdentity) {
    out = operands[0].chunk;
    return true;
  }
  // Checked, then paid for, then done.
  if (!checkStore(operands, destination, expr) || !spendOp(expr.range) ||
      !spendSteps(static_cast<uint64_t>(operands.size()) * destination.count, expr.range))
    return false;
  if (!expr.hints) {
    emitStore(operands, destination, expr, out);
    return true;
  }
  // Hints at the statement itself hold for it alone.
  Hints outer = hints, own;
  if (!evaluateHints(*expr.hints, own))
    return false;
  useHints(own);
  emitStore(operands, destination, expr, out);
  useHints(outer);
  return true;
}

bool Elaborator::fitDestination(Place &destination, uint32_t count, const Expr &expr) {
  // A destination with an end of its own must have the source's length.
  if (!destination.isOpen && destination.count != count) {
    error(DiagnosticCode::CountMismatch, expr.b->range,
          "the destination has " + std::to_string(destination.count) + " chunks, the source " +
              std::to_string(count));
    return false;
  }
  // In 64 bits: the index and count are of the program.
  uint64_t size = layout.size(destination);
  if (static_cast<uint64_t>(destination.index) + count > size) {
    destination.count = count;
    error(DiagnosticCode::ChunkOutOfRange, expr.b->range,
          "the source has " + std::to_string(count) + " chunks; " + layout.describe(destination) +
              " ends behind the buffer, which has " + std::to_string(size));
    return false;
  }
  destination.count = count;
  return true;
}

bool Elaborator::checkStore(std::span<const Operand> operands, const Place &destination,
                            const Expr &expr) {
  // For each source: is there a way to it, and does it overlap the destination only as a whole? A
  // partial overlap would read what was just written, slice by slice.
  for (const auto &[chunk, operand] : operands) {
    if (!checkLinks(expr, chunk.place.rank, destination.rank))
      return false;
    auto overlapsInPart = [&](const Memory &memory) {
      return layout.overlap(chunk.place, destination, memory.isInPlace()) ==
             Layout::Overlap::Partial;
    };
    auto memory = std::find_if(memories.begin(), memories.end(), overlapsInPart);
    if (memory == memories.end())
      continue;
    std::string mode = modeText(*memory, overlapsInPart);
    // If it is only in one mode, claiming the other one helps.
    offerModes(mode,
               error(DiagnosticCode::PartialOverlap, expr.range,
                     mode + "the source " + layout.describe(chunk.place) + " and the destination " +
                         layout.describe(destination) + " overlap in part"));
    return false;
  }
  // The input must stay as it is out of place: the user's buffer is const there.
  if (destination.buffer != BufferKind::Input || !info.outOfPlace)
    return true;
  error(DiagnosticCode::DestroyedInput, expr.b->range,
        "this writes to " + layout.describe(destination) +
            ", but the input stays as it is when the collective is called out of place; write to "
            "the output or to scratch");
  return false;
}

void Elaborator::emitStore(std::span<const Operand> operands, const Place &destination,
                           const Expr &expr, Chunk &out) {
  ChunkRange range = layout.range(destination);
  locationBuffer.clear();
  handleBuffer.clear();
  for (const auto &[chunk, operand] : operands) {
    locationBuffer.push_back(layout.first(chunk.place));
    handleBuffer.push_back(chunk.handle);
  }
  ChunkHandle handle = operands.size() == 1 ? sink.copy(handleBuffer[0], range, expr.range)
                                            : sink.reduce(handleBuffer, range, expr.range);
  LocationId first = layout.first(destination);
  Version version = trace.addEvent(&expr, context(), locationBuffer, first, destination.count);
  // Before what memory has to be waited for: it is read at once, as a whole, which it must have
  // been stored for.
  out = {destination, version, handle};
  for (Memory &memory : memories) {
    // In place, a copy from the input to its own output changes nothing.
    bool isIdentity = operands.size() == 1 &&
                      layout.overlap(operands[0].chunk.place, destination, memory.isInPlace()) ==
                          Layout::Overlap::Same;
    if (!isIdentity)
      memory.write(locationBuffer, first, destination.count, version);
  }
}

} // namespace occl::frontend
