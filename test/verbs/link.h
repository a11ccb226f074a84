#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

/// Disturbs a soft NIC: the words of link.sh.
inline void link(const std::string &words) {
  ASSERT_EQ(std::system(("test/verbs/link.sh " + words).c_str()), 0) << words;
}
