// A thread inside wait(), or a call that waits.
#pragma once

namespace occl::daemon {

class Device;

/// As long as it lives its thread executes what is open on the device, so that workers need not.
class InsideWait {
public:
  explicit InsideWait(Device &device);
  /// Hands over what else is open.
  ~InsideWait();
  InsideWait(const InsideWait &) = delete;
  InsideWait &operator=(const InsideWait &) = delete;

private:
  Device &device;
};

} // namespace occl::daemon
