// Whether a file can be written, before there is anything to write.
#pragma once

#include <string>

namespace occl {

/// The file that `path` leads to if it is a symbolic link, whether that file is there or not; else
/// `path`.
std::string linkTarget(const std::string &path);

/// Why no file can be written at `path`, as the system says it; "" if one can, as far as that is
/// known before. Leaves everything as it is: an earlier file keeps its content, none is made, and
/// no pipe is opened, which would wait for a reader.
std::string whyNotWritable(const std::string &path);

} // namespace occl
