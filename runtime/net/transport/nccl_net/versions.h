// One interface onto the tables of five versions.
#pragma once

#include "runtime/net/transport/nccl_net/plugin.h"

#include <memory>

namespace occl::net {

/// Of the newest version for which `find(symbol)` gives a table; null: of none. Tables stay.
std::unique_ptr<NcclNetPlugin> newestNcclNet(void *(*find)(void *library, const char *symbol),
                                             void *library);

} // namespace occl::net
