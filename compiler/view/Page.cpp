#include "compiler/view/Page.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <ostream>

// Of page/, embedded.
extern "C" const char occlViewPageBegin[], occlViewPageEnd[];

namespace occl::view {

namespace {

/// As a JSON string that cannot end the element it stands in.
std::string quoted(const std::string &text) {
  std::string json =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string safe;
  for (const char c : json)
    safe += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return safe;
}

class Writer {
public:
  explicit Writer(std::ostream &out) : out(out) {}

  template <class Range, class Write>
  void list(const char *name, const Range &range, Write writeElement) {
    // No element is last in an array with a comma behind.
    out << '"' << name << "\":[";
    const char *separator = "";
    for (const auto &element : range) {
      out << separator;
      writeElement(element);
      separator = ",";
    }
    out << ']';
  }

  void strings(const char *name, const std::vector<std::string> &texts) {
    list(name, texts, [&](const std::string &text) { out << quoted(text); });
  }

  void time(double microseconds) {
    char text[40];
    // Six digits are a picosecond, which is what predictions have; zeros behind are left out, as a
    // page has 10^5 numbers.
    std::snprintf(text, sizeof text, "%.6f", microseconds);
    std::string digits = text;
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.')
      digits.pop_back();
    out << digits;
  }

  static int64_t orNone(uint32_t index) { return index == kNone ? -1 : int64_t{index}; }

  void layer(const Layer &layer) {
    // Spans and arrows as flat lists of numbers, which a browser parses several times as fast as
    // objects; texts once each, by number.
    const Schedule &schedule = *layer.schedule;
    out << "{\"name\":" << quoted(layer.name) << ",\"makespan\":";
    time(schedule.makespan);
    out << ",\"tiles\":" << schedule.tiles << ",\"tilesShown\":" << schedule.tilesInTrace << ',';
    strings("texts", schedule.texts);
    out << ',';
    strings("invocations", schedule.invocations);
    out << ',';
    list("spans", schedule.spans, [&](const Span &span) {
      out << span.lane << ',';
      time(span.begin);
      out << ',';
      time(span.duration);
      out << ',' << span.name << ',' << span.text << ',' << orNone(span.source) << ','
          << orNone(span.invocation) << ',' << orNone(span.instruction);
    });
    out << ',';
    list("arrows", schedule.arrows, [&](const Arrow &arrow) {
      out << arrow.from << ',' << arrow.to << ',' << (arrow.isSignal ? 1 : 0);
    });
    out << ',';
    list("links", schedule.links, [&](const Link &link) {
      out << '[' << quoted(link.name) << ',' << link.bytes << ',';
      time(link.busy);
      out << ']';
    });
    out << '}';
  }

  void document(const std::string &title, const std::vector<Layer> &layers) {
    // Lanes are those of the first layer: the others are drawn into them.
    out << "{\"title\":" << quoted(title) << ',';
    list("lanes", layers.front().schedule->lanes, [&](const Lane &lane) {
      out << '[' << lane.rank << ',' << quoted(lane.name) << ',' << (lane.isThreadBlock ? 1 : 0)
          << ']';
    });
    out << ',';
    list("layers", layers, [&](const Layer &each) { layer(each); });
    out << '}';
  }

private:
  std::ostream &out;
};

} // namespace

void writePage(std::ostream &out, const std::string &title, const std::vector<Layer> &layers) {
  static constexpr std::string_view kData = "@DATA@";
  const std::string_view page(occlViewPageBegin, occlViewPageEnd - occlViewPageBegin);
  const size_t place = page.find(kData);
  out << page.substr(0, place);
  Writer(out).document(title, layers);
  out << page.substr(place + kData.size());
}

} // namespace occl::view
