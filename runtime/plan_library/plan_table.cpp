// Tables that say which plan serves which size.
#include "runtime/plan_library/plan_table.h"

#include <charconv>
#include <map>
#include <sstream>
#include <tuple>

namespace occl::plan_library {

namespace {

constexpr const char *kHead = "OCCL plan table 1";

template <class Number> bool parse(const std::string &text, Number &number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// "8", or on islands "2x4".
bool parseShape(const std::string &text, TableRow &row) {
  const size_t x = text.find('x');
  if (x == std::string::npos)
    return parse(text, row.numRanks);
  constexpr uint32_t kMost = 1u << 16; // so that the product is right
  uint32_t ofIsland = 0;
  const bool isRead =
      parse(text.substr(0, x), row.numIslands) && parse(text.substr(x + 1), ofIsland);
  row.numRanks = row.numIslands * ofIsland;
  return isRead && row.numIslands > 1 && row.numIslands < kMost && ofIsland < kMost;
}

bool parseRow(const std::string &line, TableRow &row) {
  std::istringstream words(line);
  std::string ranks, bytes, number, more;
  if (!(words >> row.planClass >> row.collective >> ranks >> bytes >> row.algorithm >> number) ||
      words >> more)
    return false;
  row.maxBytes = ~uint64_t{0};
  return parseShape(ranks, row) && parse(number, row.number) && row.number > 0 &&
         (bytes == "-" || parse(bytes, row.maxBytes));
}

} // namespace

StatusOr<std::vector<TableRow>> readPlanTable(const std::string &text, const std::string &origin) {
  std::istringstream lines(text);
  std::vector<TableRow> rows;
  std::map<std::tuple<std::string, std::string, uint32_t, uint32_t>, uint64_t> limits; // the last
  uint32_t number = 0;
  bool isHeaded = false;
  const auto wrong = [&](const std::string &what) {
    return Status(StatusCode::InvalidArgument, origin + ":" + std::to_string(number) + ": " + what);
  };
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty() || line[0] == '#')
      continue;
    if (!isHeaded && line != kHead)
      return wrong(std::string("a plan table begins with the line '") + kHead + "'");
    if (!isHeaded) {
      isHeaded = true;
      continue;
    }
    TableRow row;
    row.line = number;
    if (!parseRow(line, row))
      return wrong("a row has six words: class, collective, ranks or islands x ranks of each, up "
                   "to how many bytes or -, "
                   "algorithm, number of the plan from 1 on");
    // The first row that fits a size is taken, so a smaller limit behind it would never be.
    const auto [last, isFirst] = limits.try_emplace(
        {row.planClass, row.collective, row.numRanks, row.numIslands}, row.maxBytes);
    if (!isFirst && row.maxBytes <= last->second)
      return wrong("sizes of a class, collective and number of ranks grow from row to row");
    last->second = row.maxBytes;
    rows.push_back(std::move(row));
  }
  if (!isHeaded)
    return wrong(std::string("a plan table begins with the line '") + kHead + "'");
  return rows;
}

} // namespace occl::plan_library
