// Where plugins log to.
#pragma once

namespace occl::net {

/// As NCCL's logging function: a line on standard error with OCCL_DEBUG=info, else nothing. Of
/// traces nothing. Any thread.
void ncclNetLog(int level, unsigned long subsystems, const char *file, int line, const char *format,
                ...) __attribute__((format(printf, 5, 6)));

} // namespace occl::net
