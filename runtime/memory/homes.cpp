// Homes: where each lies, and who has it.
#include "runtime/memory/homes.h"

#include <algorithm>

namespace occl::transport {

Home *Homes::make(uint64_t bytes) {
  const uint64_t rounded = Arena::roundToClass(bytes);
  // The last gap that is large enough, whose end is free below `end`.
  uint64_t end = arena.size();
  auto behind = homes.begin();
  for (; behind != homes.end(); end = behind->offset, ++behind)
    if (end - (behind->offset + behind->bytes) >= rounded)
      break;
  if (end < rounded)
    return nullptr;
  Home &made = *homes.insert(behind, {end - rounded, rounded});
  kept += rounded;
  ++numLoose; // whoever is there now may stay as long as it likes
  return &made;
}

void Homes::release(std::list<Home> &list, Home &home) {
  if (home.isHeld)
    arena.release(home.offset, home.bytes);
  else
    --numLoose;
  // Others may have theirs there soon: calls are not to come there first, as that was freed last.
  arena.merge();
  list.remove_if([&](const Home &each) { return &each == &home; });
}

void Homes::giveUp(Home &home) {
  kept -= home.bytes;
  if (!home.isUsed)
    return release(homes, home);
  const auto it = std::ranges::find_if(homes, [&](const Home &each) { return &each == &home; });
  leaving.splice(leaving.end(), homes, it);
}

bool Homes::hold(Home &home) {
  if (home.isHeld)
    return true;
  home.isHeld = arena.allocateAt(home.offset, home.bytes);
  numLoose -= home.isHeld ? 1 : 0;
  return home.isHeld;
}

bool Homes::enter(Home &home) {
  if (home.isUsed || !hold(home))
    return false;
  home.isUsed = true;
  return true;
}

void Homes::leave(Home &home) {
  home.isUsed = false;
  if (std::ranges::any_of(leaving, [&](const Home &each) { return &each == &home; }))
    release(leaving, home);
}

bool Homes::lend() {
  bool any = false;
  for (Home &home : homes)
    if (home.isHeld && !home.isUsed) {
      arena.release(home.offset, home.bytes);
      home.isHeld = false;
      ++numLoose;
      any = true;
    }
  return any;
}

bool Homes::isLent(uint64_t offset, uint64_t bytes) const {
  return numLoose != 0 && std::ranges::any_of(homes, [&](const Home &home) {
           return !home.isHeld && home.offset < offset + bytes && offset < home.offset + home.bytes;
         });
}

bool Homes::recall() {
  if (numLoose == 0)
    return true;
  for (Home &home : homes)
    (void)hold(home);
  return numLoose == 0;
}

} // namespace occl::transport
