#include "tools/occl/programs.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <unistd.h>

namespace occl::driver {

namespace {

namespace fs = std::filesystem;

fs::path ownFolder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : self.parent_path();
}

std::string firstThatIsThere(std::initializer_list<fs::path> places) {
  std::error_code error;
  for (const fs::path &place : places)
    if (fs::exists(place, error))
      return place.lexically_normal().string();
  return "";
}

} // namespace

std::string pathOf(const std::string &program) {
  const std::string found =
      firstThatIsThere({ownFolder() / program, ownFolder() / ".." / program / program});
  return found.empty() ? program : found;
}

std::string pathOfNccl() {
  if (const char *given = std::getenv("OCCL_NCCL_LIBRARY"))
    return given;
  return firstThatIsThere({ownFolder() / "libnccl.so.2",
                           ownFolder() / "../lib/occl/nccl/libnccl.so.2",
                           ownFolder() / "../../nccl/libnccl.so.2"});
}

int become(const std::string &who, const std::string &program,
           const std::vector<std::string> &arguments) {
  std::vector<char *> words = {const_cast<char *>(program.c_str())};
  for (const std::string &argument : arguments)
    words.push_back(const_cast<char *>(argument.c_str()));
  words.push_back(nullptr);
  execvp(program.c_str(), words.data());
  const int why = errno;
  std::fprintf(stderr, "%s: %s: %s\n", who.c_str(), program.c_str(), std::strerror(why));
  return why == ENOENT ? 127 : 126;
}

} // namespace occl::driver
