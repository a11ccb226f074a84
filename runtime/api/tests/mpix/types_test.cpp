// Which of MPI's types are elements one behind the other, and of what.
#include "runtime/api/tests/mpix/ranks.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace occl::mpix::testing {
namespace {

struct Expected {
  const char *name;
  std::function<void(MPI_Datatype *)> make;
  uint64_t elements = 0; // 0: refused
  occlDataType_t type = occlInt32;
  bool isExact = true;
};

void structOf(std::vector<int> lengths, std::vector<MPI_Aint> at, std::vector<MPI_Datatype> types,
              MPI_Datatype *made) {
  MPI_Type_create_struct(static_cast<int>(lengths.size()), lengths.data(), at.data(), types.data(),
                         made);
}

const Expected kTypes[] = {
    {"contiguous", [](auto *t) { MPI_Type_contiguous(7, MPI_INT, t); }, 7},
    {"nothing", [](auto *t) { MPI_Type_contiguous(0, MPI_INT, t); }, 0, occlUint8},
    {"vector without gaps", [](auto *t) { MPI_Type_vector(3, 4, 4, MPI_DOUBLE, t); }, 12,
     occlFloat64},
    {"vector of one block", [](auto *t) { MPI_Type_vector(1, 4, 9, MPI_FLOAT, t); }, 4,
     occlFloat32},
    {"vector with gaps", [](auto *t) { MPI_Type_vector(3, 4, 5, MPI_INT, t); }},
    {"hvector without gaps", [](auto *t) { MPI_Type_create_hvector(3, 2, 8, MPI_INT, t); }, 6},
    {"hvector with gaps", [](auto *t) { MPI_Type_create_hvector(3, 2, 12, MPI_INT, t); }},
    {"indexed",
     [](auto *t) {
       const int lengths[] = {2, 3}, at[] = {0, 2};
       MPI_Type_indexed(2, lengths, at, MPI_INT, t);
     },
     5},
    {"indexed in another order",
     [](auto *t) {
       const int lengths[] = {2, 2}, at[] = {2, 0};
       MPI_Type_indexed(2, lengths, at, MPI_INT, t);
     }},
    {"indexed from behind the begin",
     [](auto *t) {
       const int lengths[] = {2}, at[] = {1};
       MPI_Type_indexed(1, lengths, at, MPI_INT, t);
     }},
    {"hindexed",
     [](auto *t) {
       const int lengths[] = {1, 0, 3};
       const MPI_Aint at[] = {0, 77, 4};
       MPI_Type_create_hindexed(3, lengths, at, MPI_INT, t);
     },
     4},
    {"indexed block",
     [](auto *t) {
       const int at[] = {0, 2, 4};
       MPI_Type_create_indexed_block(3, 2, at, MPI_INT, t);
     },
     6},
    {"hindexed block",
     [](auto *t) {
       const MPI_Aint at[] = {0, 8, 20};
       MPI_Type_create_hindexed_block(3, 2, at, MPI_INT, t);
     }},
    {"duplicate", [](auto *t) { MPI_Type_dup(MPI_UINT64_T, t); }, 1, occlUint64},
    {"resized to its size", [](auto *t) { MPI_Type_create_resized(MPI_INT, 0, 4, t); }, 1},
    {"resized", [](auto *t) { MPI_Type_create_resized(MPI_INT, 0, 8, t); }},
    {"struct of one type",
     [](auto *t) {
       structOf({2, 1}, {0, 8}, {MPI_INT, MPI_INT}, t);
     },
     3},
    {"struct of two types",
     [](auto *t) {
       structOf({2, 1}, {0, 8}, {MPI_INT, MPI_DOUBLE}, t);
     },
     16, occlUint8, false},
    {"struct with a gap",
     [](auto *t) {
       structOf({1, 1}, {0, 8}, {MPI_INT, MPI_DOUBLE}, t);
     }},
    {"nested",
     [](auto *t) {
       MPI_Datatype row;
       MPI_Type_contiguous(4, MPI_FLOAT, &row);
       MPI_Type_vector(2, 3, 3, row, t);
       MPI_Type_free(&row);
     },
     24, occlFloat32},
    {"nested with gaps",
     [](auto *t) {
       MPI_Datatype row;
       MPI_Type_vector(2, 1, 2, MPI_FLOAT, &row);
       MPI_Type_contiguous(2, row, t);
       MPI_Type_free(&row);
     }},
    {"subarray",
     [](auto *t) {
       const int all[] = {4, 4}, some[] = {2, 2}, from[] = {0, 0};
       MPI_Type_create_subarray(2, all, some, from, MPI_ORDER_C, MPI_INT, t);
     }},
};

TEST(Types, DerivedOnes) {
  for (const Expected &is : kTypes) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    is.make(&type);
    mpixBuffer buffer{};
    const int code = mpixBufferOf(3, 2, type, &buffer);
    const bool isNothing = is.type == occlUint8 && is.elements == 0;
    EXPECT_EQ(code, is.elements != 0 || isNothing ? MPI_SUCCESS : MPI_ERR_TYPE) << is.name;
    if (code == MPI_SUCCESS) {
      EXPECT_EQ(buffer.flat.elements, is.elements) << is.name;
      EXPECT_EQ(buffer.all, 6 * is.elements) << is.name;
    }
    if (code == MPI_SUCCESS && !isNothing) {
      EXPECT_EQ(buffer.flat.type, is.type) << is.name;
      EXPECT_EQ(buffer.flat.isExact != 0, is.isExact) << is.name;
    }
    MPI_Type_free(&type);
  }
}

TEST(Types, NamedOnes) {
  const struct {
    MPI_Datatype mpi;
    occlDataType_t type;
    uint64_t elements;
    bool isExact;
  } kNamed[] = {
      {MPI_BYTE, occlUint8, 1, true},      {MPI_CHAR, occlUint8, 1, false},
      {MPI_SHORT, occlUint8, 2, false},    {MPI_INT, occlInt32, 1, true},
      {MPI_UNSIGNED, occlUint32, 1, true}, {MPI_LONG, occlInt64, 1, true},
      {MPI_FLOAT, occlFloat32, 1, true},   {MPI_DOUBLE, occlFloat64, 1, true},
      {MPI_INT8_T, occlInt8, 1, true},     {MPI_UINT64_T, occlUint64, 1, true},
      {MPI_2INT, occlUint8, 8, false},     {MPI_C_DOUBLE_COMPLEX, occlUint8, 16, false},
  };
  for (const auto &is : kNamed) {
    mpixBuffer buffer{};
    ASSERT_EQ(mpixBufferOf(1, 1, is.mpi, &buffer), MPI_SUCCESS) << MPIX_Error_text();
    EXPECT_EQ(buffer.flat.type, is.type);
    EXPECT_EQ(buffer.flat.elements, is.elements);
    EXPECT_EQ(buffer.flat.isExact != 0, is.isExact);
  }
}

TEST(Types, Refused) {
  mpixBuffer buffer{};
  EXPECT_EQ(mpixBufferOf(1, 1, MPI_SHORT_INT, &buffer), MPI_ERR_TYPE);
  EXPECT_TRUE(hasText("has gaps")) << MPIX_Error_text();
  EXPECT_EQ(mpixBufferOf(1, 1, MPI_DATATYPE_NULL, &buffer), MPI_ERR_TYPE);
  EXPECT_EQ(mpixBufferOf(-1, 1, MPI_INT, &buffer), MPI_ERR_ARG);
  EXPECT_EQ(mpixBufferOf(1, -1, MPI_INT, &buffer), MPI_ERR_COUNT);
  EXPECT_TRUE(hasText("count is -1")) << MPIX_Error_text();
  EXPECT_EQ(mpixBufferOf(1 << 30, MPI_Count{1} << 40, MPI_INT, &buffer), MPI_ERR_COUNT);
  EXPECT_EQ(mpixBufferOf(2, MPI_Count{1} << 62, MPI_SHORT, &buffer), MPI_ERR_COUNT);
}

/// One element may have an extent of its own.
TEST(Types, AnExtentCountsBetweenTwoElementsAlone) {
  MPI_Datatype wide;
  MPI_Type_create_resized(MPI_INT, 0, 8, &wide);
  mpixBuffer buffer{};
  EXPECT_EQ(mpixBufferOf(1, 1, wide, &buffer), MPI_SUCCESS) << MPIX_Error_text();
  EXPECT_EQ(mpixBufferOf(2, 1, wide, &buffer), MPI_ERR_TYPE);
  EXPECT_EQ(mpixBufferOf(1, 2, wide, &buffer), MPI_ERR_TYPE);
  EXPECT_EQ(mpixBufferOf(2, 0, wide, &buffer), MPI_SUCCESS);
  MPI_Type_free(&wide);
}

/// Of more digits than are looked at, and of a number that has no 64 bits.
TEST(Hints, AValueLongerThanANumberIsNone) {
  MPI_Info info;
  MPI_Info_create(&info);
  uint64_t value = 0;
  MPI_Info_set(info, "number", "18446744073709551615");
  EXPECT_EQ(mpixHint(info, "number", &value), MPI_SUCCESS) << MPIX_Error_text();
  EXPECT_EQ(value, UINT64_MAX);
  for (const std::string &wrong :
       {std::string("18446744073709551616"), std::string(31, '0') + "4", std::string(40, '0')}) {
    MPI_Info_set(info, "number", wrong.c_str());
    EXPECT_EQ(mpixHint(info, "number", &value), MPI_ERR_INFO_VALUE) << wrong;
    EXPECT_TRUE(hasText("no number")) << MPIX_Error_text();
  }
  EXPECT_EQ(mpixHint(info, "another", &value), MPI_SUCCESS);
  MPI_Info_free(&info);
}

} // namespace
} // namespace occl::mpix::testing
