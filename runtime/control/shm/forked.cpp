#include "runtime/control/shm/forked.h"

#include <unistd.h>

namespace occl::bootstrap {

Descriptor openNotInherited(const std::function<int()> &open) {
  const OwnDescriptor own = openInThisProcess(open);
  Descriptor opened(own.number);
  opened.process = own.process;
  return opened;
}

Descriptor::~Descriptor() {
  if (process != 0)
    closeInThisProcess({number, process});
  else if (number >= 0)
    close(number);
}

} // namespace occl::bootstrap
