// What is known of a collective when something is said about it.
#pragma once

#include "plan/model/plan.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace occl::insight {

struct KnownCollective {
  std::string name;                       // "'grad3' (id 3)"
  std::shared_ptr<const plan::Plan> plan; // null if it is not known here
};
using LookUp = std::function<KnownCollective(uint64_t collective)>;

} // namespace occl::insight
