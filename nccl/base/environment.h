// What the environment says, and where messages go.
#pragma once

#include <optional>
#include <string>

namespace occl::nccl {

/// A variable of the environment, else of the file that NCCL_CONF_FILE names, else of
/// ~/.nccl.conf or /etc/nccl.conf (lines NAME=VALUE, # begins a comment). Files are read once.
std::optional<std::string> setting(const char *name);

/// OCCL_NCCL_HOST=1: buffers are host memory, and CUDA is not used. Read once.
bool isHostMode();

enum class LogLevel { None, Version, Warn, Info };

/// Writes a line to standard error, or the file NCCL_DEBUG_FILE (%h is the host, %p the process),
/// if NCCL_DEBUG asks for as much. Any thread.
void log(LogLevel level, const std::string &text);
/// Reads NCCL_DEBUG and NCCL_DEBUG_FILE again.
void resetLog();

/// Names on standard error, once in a process, the variables of NCCL's that are set and that OCCL
/// does not know.
void nameIgnoredSettings();

/// Adds a line to the file that OCCL_NCCL_REPORT names, once in a process: `occl nccl` wants to
/// know whether anybody makes a communicator.
void reportUse();

} // namespace occl::nccl
