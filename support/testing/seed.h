// What random tests of one run have in common.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace occl {

/// A number from the environment.
inline uint64_t numberFrom(const char *variable, uint64_t otherwise) {
  const char *text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// OCCL_TEST_SEED, or a random one; printed.
inline uint64_t printedSeed() {
  const uint64_t seed = numberFrom("OCCL_TEST_SEED", std::random_device{}());
  std::cout << "OCCL_TEST_SEED=" << seed << std::endl;
  return seed;
}

} // namespace occl
