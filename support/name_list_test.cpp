#include "support/name_list.h"

#include <gtest/gtest.h>

namespace occl {
namespace {

TEST(NameList, NamesArePrefixes) {
  const NameList list("mlx5,eth0");
  EXPECT_TRUE(list.takes("mlx5_3"));
  EXPECT_TRUE(list.takes("eth0"));
  EXPECT_FALSE(list.takes("eth1"));
}

TEST(NameList, WholeNamesBehindAnEqualsSign) {
  const NameList list("=mlx5_1,mlx5_2");
  EXPECT_TRUE(list.takes("mlx5_1"));
  EXPECT_TRUE(list.takes("mlx5_2"));
  EXPECT_FALSE(list.takes("mlx5_10"));
}

TEST(NameList, NoneOfThoseBehindACaret) {
  EXPECT_FALSE(NameList("^mlx5_1").takes("mlx5_10"));
  EXPECT_TRUE(NameList("^mlx5_1").takes("mlx5_2"));
  EXPECT_TRUE(NameList("^=mlx5_1").takes("mlx5_10"));
  EXPECT_FALSE(NameList("^=mlx5_1").takes("mlx5_1"));
}

TEST(NameList, PortsBehindAColon) {
  const NameList list("=mlx5_0:1,mlx5_1");
  EXPECT_TRUE(list.takes("mlx5_0", 1));
  EXPECT_FALSE(list.takes("mlx5_0", 2));
  EXPECT_TRUE(list.takes("mlx5_1", 2));
  EXPECT_FALSE(NameList("^=mlx5_0:1").takes("mlx5_0", 1));
  EXPECT_TRUE(NameList("^=mlx5_0:1").takes("mlx5_0", 2));
  EXPECT_FALSE(NameList("mlx5_0:one").takes("mlx5_0", 1)) << "that is no port";
}

TEST(NameList, AnEmptyOneTakesNothing) {
  EXPECT_FALSE(NameList("").takes("eth0"));
  EXPECT_FALSE(NameList(",").takes("eth0"));
  EXPECT_TRUE(NameList("^").takes("eth0"));
}

} // namespace
} // namespace occl
