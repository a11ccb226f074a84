// The page that `occl view` writes: HTML that needs nothing else.
#pragma once

#include "compiler/view/Schedule.h"

#include <iosfwd>
#include <vector>

namespace occl::view {

/// Schedules that are drawn over each other; all have the same lanes.
struct Layer {
  std::string name; // "predicted", "measured"
  const Schedule *schedule;
};

/// Page and data: the data are the JSON object in the element "data", whose form page/model.js
/// describes.
void writePage(std::ostream &out, const std::string &title, const std::vector<Layer> &layers);

} // namespace occl::view
