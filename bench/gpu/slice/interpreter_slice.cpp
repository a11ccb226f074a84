// interpreter_slice check|quick-check|steps|direct|protocols|measure <plan directory> <ranks>
// [one-device]
//
// The interpreter on GPUs: ranks are devices of this process, or share the first one. check
// compares with the reference, quick-check does a little of that (for the sanitizers), measure and
// protocols print tables. No wait is unbounded: what does not come ends the kernels after about a
// second, and the program says who waited for what.
#include "bench/gpu/kernels/kernel_arguments.h"
#include "bench/gpu/slice/check.h"
#include "bench/gpu/slice/measure.h"

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace occl;

int main(int argc, char **argv) {
  std::string mode = argc > 1 ? argv[1] : "";
  bool measures = mode == "measure", protocols = mode == "protocols", direct = mode == "direct",
       steps = mode == "steps", quick = mode == "quick-check";
  unsigned long ranks = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 0;
  bool oneDevice = argc > 4 && std::string(argv[4]) == "one-device";
  if (argc < 4 || (!measures && !protocols && !direct && !steps && !quick && mode != "check") ||
      ranks < 2 || ranks > bench::kMaxRanks) {
    std::fprintf(stderr,
                 "usage: interpreter_slice check|quick-check|steps|direct|protocols|measure "
                 "<plan directory> <ranks, 2 to %u> [one-device]\n",
                 bench::kMaxRanks);
    return 2;
  }
  bench::DeviceGroup group(static_cast<uint32_t>(ranks), oneDevice,
                           measures || protocols || direct ? 4ull << 30 : 64ull << 20);
  Status status = measures    ? bench::measureAll(group, argv[2])
                  : protocols ? bench::measureProtocols(group, argv[2])
                  : direct    ? bench::measureDirect(group, argv[2])
                  : steps     ? bench::measureSteps(group, argv[2])
                              : bench::checkAll(group, argv[2], quick);
  if (!status.ok()) {
    std::fprintf(stderr, "interpreter_slice: %s\n", status.message().c_str());
    return 1;
  }
  return 0;
}
