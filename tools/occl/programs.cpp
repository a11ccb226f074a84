#include "tools/occl/programs.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace occl::driver {

namespace {

std::string above(const std::string &path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

/// "" if the system does not say.
std::string ownFolder() {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self));
  return length <= 0 ? "" : above(std::string(self, static_cast<size_t>(length)));
}

std::string firstThatIsThere(std::initializer_list<std::string> places) {
  for (const std::string &place : places)
    if (access(place.c_str(), F_OK) == 0)
      return place;
  return "";
}

} // namespace

std::string pathOf(const std::string &program) {
  const std::string folder = ownFolder();
  const std::string found =
      firstThatIsThere({folder + "/" + program, above(folder) + "/" + program + "/" + program});
  return found.empty() ? program : found;
}

std::string pathOfNccl() {
  if (const char *given = std::getenv("OCCL_NCCL_LIBRARY"))
    return given;
  const std::string folder = ownFolder(), parent = above(folder);
  return firstThatIsThere({folder + "/libnccl.so.2", parent + "/lib/occl/nccl/libnccl.so.2",
                           above(parent) + "/nccl/libnccl.so.2"});
}

std::string pathOfLibrary() {
  const std::string folder = ownFolder(), parent = above(folder);
  return firstThatIsThere({folder + "/" + kLibraryName, parent + "/lib/" + kLibraryName,
                           above(parent) + "/packaging/" + kLibraryName});
}

std::string pathOfHeader() {
  return firstThatIsThere({above(ownFolder()) + "/include/occl/occl.h"});
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
