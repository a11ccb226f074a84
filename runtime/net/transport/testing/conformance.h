// What every transport must do: instantiate the suite Transport for it.
#pragma once

#include "runtime/net/transport/testing/side.h"

#include <gtest/gtest.h>

namespace occl::net {

/// Makes the two ends of a connection, or fails the test.
using Connect = void (*)(Side &a, Side &b);

class Transport : public ::testing::TestWithParam<Connect> {
protected:
  Transport() { GetParam()(a, b); }
  /// Sends it, or fails the test.
  void put(const Put &put) {
    ASSERT_EQ(a.endpoint->put(put), Posted::Yes);
    a.endpoint->flush();
  }

  Side a, b;
};

} // namespace occl::net
