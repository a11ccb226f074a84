#include "tools/occl-run/hosts/places.h"

#include <algorithm>
#include <charconv>
#include <fmt/core.h>
#include <sstream>

namespace occl::run {
namespace {

constexpr uint32_t kMostSlots = 1024;

/// "host:slots", "[address]:slots"; false if it is none.
bool readPlace(const std::string &text, Place &place) {
  // IPv6 addresses have colons themselves, so they are in brackets.
  const bool hasBrackets = text.starts_with('[');
  const size_t end = hasBrackets ? text.find(']') : text.find(':');
  place.host =
      hasBrackets ? text.substr(1, end == std::string::npos ? end : end - 1) : text.substr(0, end);
  const std::string rest = end == std::string::npos ? "" : text.substr(hasBrackets ? end + 1 : end);
  if (hasBrackets && end == std::string::npos)
    return false;
  // What begins with a minus would be an option of ssh.
  if (place.host.empty() || place.host.starts_with('-') ||
      place.host.find_first_of(" \t\n'\"\\$`;&|<>()") != std::string::npos)
    return false;
  // Without a number of slots: one, or as many as needed.
  if (rest.empty())
    return true;
  const char *last = rest.data() + rest.size();
  const auto [stop, error] = std::from_chars(rest.data() + 1, last, place.slots);
  return rest[0] == ':' && error == std::errc() && stop == last && place.slots > 0 &&
         place.slots <= kMostSlots;
}

void shareOut(std::vector<Place> &places, uint32_t numRanks) {
  const auto numHosts = static_cast<uint32_t>(places.size());
  for (uint32_t i = 0; i < numHosts; ++i)
    places[i].numRanks = numRanks / numHosts + (i < numRanks % numHosts ? 1 : 0);
}

void fillInTurn(std::vector<Place> &places, uint32_t numRanks) {
  for (Place &place : places) {
    place.numRanks = std::min(numRanks, std::max(place.slots, 1u));
    numRanks -= place.numRanks;
  }
}

} // namespace

std::vector<Place> placeRanks(const std::string &hosts, uint32_t numRanks, std::string &problem) {
  // "a,b:4": names, with at most so many ranks each.
  std::vector<Place> places;
  std::istringstream items(hosts);
  for (std::string item; std::getline(items, item, ',');) {
    Place place;
    if (!readPlace(item, place)) {
      problem =
          fmt::format("'{}' is no host, expected NAME or NAME:SLOTS, as in --hosts a,b:4", item);
      return {};
    }
    places.push_back(place);
  }
  // With slots anywhere in the list, machines are filled one after the other; without, ranks are
  // shared out evenly.
  const bool haveSlots = std::ranges::any_of(places, [](const Place &it) { return it.slots > 0; });
  uint32_t numSlots = 0;
  for (const Place &place : places)
    numSlots += std::max(place.slots, 1u);
  // Without -n, one rank a slot.
  if (numRanks == 0)
    numRanks = numSlots;
  if (places.empty())
    problem = "--hosts names no host";
  else if (haveSlots && numSlots < numRanks)
    problem = fmt::format("there are {} slots for {} ranks", numSlots, numRanks);
  if (!problem.empty())
    return {};
  haveSlots ? fillInTurn(places, numRanks) : shareOut(places, numRanks);
  // Machines that get no rank are not connected to.
  std::erase_if(places, [](const Place &place) { return place.numRanks == 0; });
  // Consecutive numbers on each machine: group-wise plans rely on neighbours being near.
  for (size_t i = 1; i < places.size(); ++i)
    places[i].firstRank = places[i - 1].firstRank + places[i - 1].numRanks;
  return places;
}

} // namespace occl::run
