// Lists by which users choose interfaces and devices, as NCCL has them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace occl {

/// NCCL_SOCKET_IFNAME, NCCL_IB_HCA: prefixes with commas between them; ^ in front: none of these;
/// = in front: whole names. Behind a name may be a colon and the number of a port.
class NameList {
public:
  explicit NameList(std::string list);

  bool takes(std::string_view name, std::optional<unsigned> port = std::nullopt) const;

private:
  struct Entry {
    std::string name;
    std::optional<unsigned> port; // none: any
  };

  bool isExclusion = false, isWhole = false;
  std::vector<Entry> entries;
};

} // namespace occl
