// Writes the log of a network plugin for OCCL_DEBUG=info.
#include "runtime/net/transport/nccl_net/logger.h"

#include "runtime/net/transport/nccl_net/abi.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace occl::net {

void ncclNetLog(int level, unsigned long, const char *file, int line, const char *format, ...) {
  const char *debug = std::getenv("OCCL_DEBUG");
  if (!debug || std::string_view(debug) != "info" || level > nccl::kLogInfo)
    return;
  // Lines that are longer are cut.
  char text[1024];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  // At once: other threads write lines, too.
  std::fprintf(stderr, "occl: network plugin%s: %s:%d %s\n",
               level <= nccl::kLogWarn ? " warns" : "", file ? file : "?", line, text);
}

} // namespace occl::net
