// occl_partitioned.hpp with a request of a communicator on devices, of which this program's own
// functions take the place of the library's: no device is needed.
#include "runtime/api/occl_partitioned.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

occlResult_t tested = occlSuccess; // by occlPtest
std::string text;
int made = 0, freed = 0;

occlPart_t aPart() { return reinterpret_cast<occlPart_t>(&made); }

} // namespace

extern "C" {
occlResult_t occlPsendInit(occlComm_t, const void *, int64_t, uint64_t, occlDataType_t, int64_t,
                           int64_t, const occlPartConfig_t *, occlPart_t *part) {
  ++made;
  *part = aPart();
  return occlSuccess;
}
occlResult_t occlPtest(occlPart_t) {
  text = tested == occlSuccess ? "" : "its epochs are work of streams";
  return tested;
}
occlResult_t occlPwait(occlPart_t) { return tested; }
occlResult_t occlPfree(occlPart_t) {
  ++freed;
  text = "of the call that frees"; // which must not be what the program reads
  return occlSuccess;
}
occlResult_t occlCommAbort(occlComm_t) { return occlSuccess; }
occlResult_t occlCommDestroy(occlComm_t) { return occlSuccess; }
const char *occlGetLastError(void) { return text.c_str(); }
const char *occlGetErrorString(occlResult_t) { return "an error"; }
}

namespace occl {
namespace {

class OnDevices : public ::testing::Test {
protected:
  OnDevices() { made = freed = 0; }
};

/// It could not be waited for at the end of its scope, nor freed before that.
TEST_F(OnDevices, RequestsAreRefusedAndFreed) {
  tested = occlInvalidArgument;
  const Communicator comm(nullptr);
  const float values[4] = {};
  try {
    const Partitioned send = psend<float>(comm, values, 2, 1);
    ADD_FAILURE() << "it was taken";
  } catch (const Error &error) {
    EXPECT_EQ(error.result(), occlInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("its epochs are work of streams"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(freed, 1);
  EXPECT_THROW(Partitioned(nullptr, aPart()), Error);
  EXPECT_EQ(freed, 2);
}

/// Whatever becomes of a request on hosts.
TEST_F(OnDevices, ThoseOfHostsAreTaken) {
  for (const occlResult_t result : {occlSuccess, occlInProgress, occlPeerFailed}) {
    tested = result;
    freed = 0;
    {
      const Partitioned taken(nullptr, aPart());
      EXPECT_EQ(taken.handle(), aPart());
      EXPECT_EQ(freed, 0);
    }
    EXPECT_EQ(freed, 1);
  }
}

} // namespace
} // namespace occl
