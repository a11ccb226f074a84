#include "tools/occl/version_checks.h"

#include "tools/command_line/app.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace {

using occl::driver::LoadedLibrary;
using occl::driver::Version;
using occl::driver::versionInHeader;
using occl::driver::versionOf;

TEST(VersionChecks, versionOfAHeader_isThatOfItsMacros) {
  EXPECT_EQ(versionInHeader("runtime/api/occl.h"), occl::tools::version());
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/header.h";
  const auto written = [&](const char *text) {
    std::ofstream(path) << text;
    return versionInHeader(path);
  };
  EXPECT_EQ(written("#define OCCL_VERSION_MAJOR 3\n\n#define OCCL_VERSION_MINOR 14\n"), "3.14");
  EXPECT_EQ(written("#define OCCL_VERSION_MAJOR 3\n"), std::nullopt);
  EXPECT_EQ(written("// OCCL_VERSION_MAJOR 3 OCCL_VERSION_MINOR 14\n"), std::nullopt);
  EXPECT_EQ(versionInHeader("/nowhere.h"), std::nullopt);
}

TEST(VersionChecks, versionOfAPackage_isItsFirstTwoNumbers) {
  EXPECT_EQ(versionOf("2.11.0+cpu"), (Version{2, 11}));
  EXPECT_EQ(versionOf("2"), (Version{2, 0}));
  EXPECT_EQ(versionOf("unknown"), (Version{0, 0}));
  EXPECT_LT(versionOf("2.6.1"), versionOf("2.11.0")) << "numbers, not texts";
}

TEST(VersionChecks, libraryThatIsNotThere_saysWhy) {
  const LoadedLibrary none("/nowhere.so"), libc("libc.so.6");
  EXPECT_FALSE(none);
  EXPECT_NE(none.problem().find("/nowhere.so"), std::string::npos) << none.problem();
  EXPECT_EQ(none.symbol("printf"), nullptr);
  EXPECT_EQ(none.pathOf("printf"), "");
  ASSERT_TRUE(libc) << libc.problem();
  EXPECT_EQ(libc.symbol("noSuchFunction"), nullptr);
  EXPECT_NE(libc.pathOf("printf").find("libc.so.6"), std::string::npos);
}

} // namespace
