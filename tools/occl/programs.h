// Where the parts of OCCL lie: beside this program, as installed, or where Bazel puts them.
#pragma once

#include <string>
#include <vector>

namespace occl::driver {

/// The path of a program of OCCL's, as "occlc"; its name alone if it is not found, for PATH.
std::string pathOf(const std::string &program);
/// Of libnccl.so.2: OCCL_NCCL_LIBRARY if that is set. "" if it is not found.
std::string pathOfNccl();

inline constexpr const char *kLibraryName = "liboccl.so.0";
/// Of that, and of occl.h as it is installed. "" if they are not found.
std::string pathOfLibrary();
std::string pathOfHeader();

/// Becomes the program. Returns only if it cannot be run, after a line on standard error that
/// begins with `who`: 127 if there is none, else 126, as shells have it.
int become(const std::string &who, const std::string &program,
           const std::vector<std::string> &arguments);

} // namespace occl::driver
