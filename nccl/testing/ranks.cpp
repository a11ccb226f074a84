#include "nccl/testing/ranks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <thread>

namespace occl::nccl::testing {

namespace {

/// Floats of fewer bits, by their fields: of 16 and 8 bits.
struct Format {
  int exponentBits, mantissaBits;
};

uint32_t pack(Format format, double value) {
  if (value == 0)
    return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::abs(value), &exponent); // 0.5 to 1
  const int bias = (1 << (format.exponentBits - 1)) - 1;
  const auto mantissa =
      static_cast<uint32_t>(std::lround((fraction * 2 - 1) * (1 << format.mantissaBits)));
  return (value < 0 ? 1u << (format.exponentBits + format.mantissaBits) : 0) |
         static_cast<uint32_t>(exponent - 1 + bias) << format.mantissaBits | mantissa;
}

double unpack(Format format, uint32_t bits) {
  const uint32_t mantissa = bits & ((1u << format.mantissaBits) - 1);
  const uint32_t exponent = bits >> format.mantissaBits & ((1u << format.exponentBits) - 1);
  const int bias = (1 << (format.exponentBits - 1)) - 1;
  const double one = 1 << format.mantissaBits;
  const double size = exponent == 0
                          ? std::ldexp(mantissa / one, 1 - bias)
                          : std::ldexp(1 + mantissa / one, static_cast<int>(exponent) - bias);
  return bits >> (format.exponentBits + format.mantissaBits) & 1 ? -size : size;
}

template <class T> void storeAs(void *at, double value) {
  const T element = static_cast<T>(value);
  std::memcpy(at, &element, sizeof(T));
}
template <class T> double loadAs(const void *at) {
  T element;
  std::memcpy(&element, at, sizeof(T));
  return static_cast<double>(element);
}

bool formatOf(ncclDataType_t type, Format &format) {
  switch (type) {
  case ncclFloat16:
    format = {5, 10};
    return true;
  case ncclBfloat16:
    format = {8, 7};
    return true;
  case ncclFloat8e4m3:
    format = {4, 3};
    return true;
  case ncclFloat8e5m2:
    format = {5, 2};
    return true;
  default:
    return false;
  }
}

} // namespace

void bounded(const std::function<void()> &body) {
  auto done = std::make_shared<std::promise<void>>();
  auto ended = done->get_future();
  std::thread watch([done = std::move(ended)]() mutable {
    if (done.wait_for(std::chrono::minutes(kSlowness)) == std::future_status::ready)
      return;
    std::fprintf(stderr, "the test hangs\n");
    std::abort();
  });
  body();
  done->set_value();
  watch.join();
}

void eachRank(int numRanks, const std::function<void(int)> &body) {
  bounded([&] {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < numRanks; ++rank)
      threads.emplace_back(body, rank);
    for (std::thread &thread : threads)
      thread.join();
  });
}

Ranks::Ranks(int numRanks) : comms(static_cast<size_t>(numRanks)) {
  EXPECT_EQ(ncclCommInitAll(comms.data(), numRanks, nullptr), ncclSuccess)
      << ncclGetLastError(nullptr);
  for (int rank = 0; rank < numRanks; ++rank)
    streams.push_back(HostStream::make());
}

Ranks::~Ranks() {
  for (ncclComm_t comm : comms)
    ncclCommDestroy(comm);
}

std::string allReduceOnce(ncclComm_t comm, cudaStream_t stream) {
  int rank = 0, size = 0;
  if (ncclCommUserRank(comm, &rank) != ncclSuccess || ncclCommCount(comm, &size) != ncclSuccess)
    return std::string("rank and size: ") + ncclGetLastError(nullptr);
  float value = static_cast<float>(rank) + 1;
  if (ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, stream) != ncclSuccess)
    return std::string("ncclAllReduce: ") + ncclGetLastError(nullptr);
  if (stream)
    HostStream::find(stream)->synchronize();
  const auto right = static_cast<float>(size * (size + 1) / 2);
  return value == right ? "" : "sum is " + std::to_string(value) + " of " + std::to_string(size);
}

size_t sizeOf(ncclDataType_t type) {
  constexpr size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return kSizes[type];
}

void store(ncclDataType_t type, void *at, double value) {
  Format format{};
  if (formatOf(type, format)) {
    const uint32_t bits = pack(format, value);
    std::memcpy(at, &bits, sizeOf(type));
    return;
  }
  switch (type) {
  case ncclInt8:
    return storeAs<int8_t>(at, value);
  case ncclUint8:
    return storeAs<uint8_t>(at, value);
  case ncclInt32:
    return storeAs<int32_t>(at, value);
  case ncclUint32:
    return storeAs<uint32_t>(at, value);
  case ncclInt64:
    return storeAs<int64_t>(at, value);
  case ncclUint64:
    return storeAs<uint64_t>(at, value);
  case ncclFloat32:
    return storeAs<float>(at, value);
  default:
    return storeAs<double>(at, value);
  }
}

double load(ncclDataType_t type, const void *at) {
  Format format{};
  if (formatOf(type, format)) {
    uint32_t bits = 0;
    std::memcpy(&bits, at, sizeOf(type));
    return unpack(format, bits);
  }
  switch (type) {
  case ncclInt8:
    return loadAs<int8_t>(at);
  case ncclUint8:
    return loadAs<uint8_t>(at);
  case ncclInt32:
    return loadAs<int32_t>(at);
  case ncclUint32:
    return loadAs<uint32_t>(at);
  case ncclInt64:
    return loadAs<int64_t>(at);
  case ncclUint64:
    return loadAs<uint64_t>(at);
  case ncclFloat32:
    return loadAs<float>(at);
  default:
    return loadAs<double>(at);
  }
}

} // namespace occl::nccl::testing
