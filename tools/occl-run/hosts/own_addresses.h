// By which addresses others may reach this machine.
#pragma once

#include <string>
#include <vector>

namespace occl::run {

/// IPv4 addresses of interfaces that are up, loopback not among them; the one by which ssh came
/// first.
std::vector<std::string> ownAddresses();

} // namespace occl::run
