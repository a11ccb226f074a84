// Sets a variable of the environment when the test that it is linked to starts.
#include <cstdlib>

#define OCCL_TEXT_OF(name) #name
#define OCCL_TEXT(name) OCCL_TEXT_OF(name)

namespace {

[[maybe_unused]] const int isSet =
    setenv(OCCL_TEXT(OCCL_TEST_VARIABLE), OCCL_TEXT(OCCL_TEST_VALUE), 1);

} // namespace
