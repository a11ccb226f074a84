// occl-doctor, which is `occl doctor`: what of this machine OCCL can use, and what is in its way.
#include "tools/command_line/app.h"
#include "tools/occl/device_checks.h"
#include "tools/occl/host_checks.h"
#include "tools/occl/programs.h"
#include "tools/occl/report.h"
#include "tools/occl/version_checks.h"

#include <CLI/CLI.hpp>

#include <string>

int main(int argc, char **argv) {
  using namespace occl::driver;
  CLI::App app{"Says what of this machine OCCL can use, and what is in its way: a line for each "
               "thing, and what to do about it.",
               "occl doctor"};
  occl::tools::prepare(app);
  app.footer("Exit status: 0, 1 if something is BROKEN, 2 after an error in the command line.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  // Each check prints its lines by itself and at once: some take seconds, and one that hangs is
  // then seen.
  Report report;
  report.add(Finding::Good, "OCCL", occl::tools::version());
  // The system first, then what builds upon it.
  checkHost(report);
  checkDevices(report);
  checkVersions(report); // behind what fork()s: libraries may start threads
  const std::string library = pathOfNccl();
  if (library.empty())
    report.add(Finding::Limited, "libnccl.so.2", "OCCL's is not beside this program",
               "`make install` puts it into lib/occl/nccl; OCCL_NCCL_LIBRARY names another place");
  else
    report.add(Finding::Good, "libnccl.so.2", library);
  return report.isBroken() ? 1 : 0;
}
