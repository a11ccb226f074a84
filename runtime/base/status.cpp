#include "runtime/base/status.h"

#include <system_error>

namespace occl {

Status systemError(std::string what, int error) {
  return {StatusCode::SystemError, std::move(what) + ": " + std::generic_category().message(error)};
}

} // namespace occl
