#include "nccl/fallback/setting.h"

#include "nccl/base/environment.h"

#include <cstdint>

namespace occl::nccl {

Outcome readFallbackSetting(FallbackSetting &to) {
  const std::string words = setting("OCCL_NCCL_FALLBACK").value_or("1");
  // Several words, divided by commas; an unknown one is refused, as a misspelt "0" would otherwise
  // allow what it should forbid.
  for (size_t begin = 0; begin <= words.size();) {
    const size_t end = std::min(words.find(',', begin), words.size());
    const std::string word = words.substr(begin, end - begin);
    begin = end + 1;
    if (word == "0")
      to.isAllowed = false;
    else if (word == "all")
      to.isAll = true;
    else if (word == "list")
      to.isListed = true;
    else if (!word.empty() && word != "1")
      return invalidUsage("OCCL_NCCL_FALLBACK has '" + word + "', its words are 0, 1, all, list");
  }
  if (!to.isAllowed && to.isAll)
    return invalidUsage("OCCL_NCCL_FALLBACK has 0 and all, which exclude each other");
  return {};
}

std::string wishForOther(const FallbackSetting &fallback, uint32_t numRanks) {
  constexpr uint32_t kMostOnDevices = 8, kMostOnHosts = 32;
  if (fallback.isAll)
    return "OCCL_NCCL_FALLBACK=all asks for it";
  if (!isHostMode() && numRanks > kMostOnDevices)
    return "there are " + std::to_string(numRanks) + " ranks on devices";
  // On hosts sends and receives go on beyond that, and another library's place is on devices.
  if (isHostMode() && numRanks > kMostOnHosts && setting("OCCL_NCCL_FALLBACK_LIBRARY"))
    return "there are " + std::to_string(numRanks) + " ranks on hosts";
  return "";
}

} // namespace occl::nccl
