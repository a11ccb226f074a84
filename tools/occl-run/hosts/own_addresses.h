// By which addresses others may reach this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace occl::run {

/// IPv4 addresses of interfaces that are up, loopback not among them; the one by which ssh came
/// first.
std::vector<std::string> ownAddresses();

/// A port of this machine on which nobody listens, kept as long as this lives: who
/// binds with SO_REUSEADDR may listen there, and the system gives it to nobody else.
class HeldPort {
public:
  HeldPort();
  ~HeldPort();
  HeldPort(const HeldPort &) = delete;
  HeldPort &operator=(const HeldPort &) = delete;

  /// 0: there is none.
  uint16_t number() const { return port; }

private:
  int socket;
  uint16_t port = 0;
};

} // namespace occl::run
