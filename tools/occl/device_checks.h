// What `occl doctor` asks CUDA's driver, if there is one.
#pragma once

#include "tools/occl/report.h"

namespace occl::driver {

/// The driver, each device, which of them access each other, and connections. Makes no context.
void checkDevices(Report &report);

} // namespace occl::driver
