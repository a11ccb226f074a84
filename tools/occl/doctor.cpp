// occl-doctor, which is `occl doctor`: what of this machine OCCL can use, and what is in its way.
#include "tools/occl/device_checks.h"
#include "tools/occl/host_checks.h"
#include "tools/occl/programs.h"
#include "tools/occl/report.h"

#include "runtime/api/occl.h"

#include <CLI/CLI.hpp>

#include <string>

int main(int argc, char **argv) {
  using namespace occl::driver;
  CLI::App app{"Says what of this machine OCCL can use, and what is in its way: a line for each\n"
               "thing, and what to do about it.",
               "occl doctor"};
  app.footer("Exit status: 0, 1 if something is BROKEN, 2 after an error in the command line.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  // Each check prints its lines by itself and at once: some take seconds, and one that hangs is
  // then seen.
  Report report;
  report.add(Finding::Good, "OCCL",
             std::to_string(OCCL_VERSION_MAJOR) + "." + std::to_string(OCCL_VERSION_MINOR));
  // The system first, then what builds upon it.
  checkHost(report);
  checkDevices(report);
  const std::string library = pathOfNccl();
  if (library.empty())
    report.add(Finding::Limited, "libnccl.so.2", "OCCL's is not beside this program",
               "`make install` puts it into lib/occl/nccl; OCCL_NCCL_LIBRARY names another place");
  else
    report.add(Finding::Good, "libnccl.so.2", library);
  return report.isBroken() ? 1 : 0;
}
