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

  /// Whether it comes to that, by what a has sent.
  template <class There> bool arrives(There there) { return arrives(a, b, there); }
  template <class There> static bool arrives(Side &from, Side &to, There there) {
    return to.await([&] {
      if (from.endpoint)
        from.poll();
      return there();
    });
  }

  Side a, b;
};

} // namespace occl::net
