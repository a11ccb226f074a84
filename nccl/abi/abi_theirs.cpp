// NVIDIA's header, where there is one.
#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>

#define FACTS factsOfTheirs
#include "nccl/abi/abi_facts.inc"

std::map<std::string, std::string> initializersOfTheirs() {
  const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  return {{"config", std::string(reinterpret_cast<const char *>(&config), sizeof(config))}};
}
#else
#include <map>
#include <string>

std::map<std::string, std::string> factsOfTheirs() { return {}; }
std::map<std::string, std::string> initializersOfTheirs() { return {}; }
#endif
