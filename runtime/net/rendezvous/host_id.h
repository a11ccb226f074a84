// Which ranks may share memory.
#pragma once

#include <string>

namespace occl::net {

/// The same for processes that can form an island: OCCL_HOSTID if it is set; else made of what
/// sharing memory takes: one kernel, one /dev/shm, one PID namespace, one user. The network
/// namespace is part of it, too, so that containers of one machine are islands of their own.
std::string hostId();

} // namespace occl::net
