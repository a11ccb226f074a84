// Sends, receives and groups for C++20, over occl_transfer.h, whose comments are the reference. A
// part of occl.hpp of its own; header only.
//
//   occl::send<float>(comm, values, 1);      // rank 0
//   occl::receive<float>(comm, values, 0);   // rank 1
//   occl::group([&] {                        // both at once
//     occl::send<float>(comm, mine, next);
//     occl::receive<float>(comm, theirs, last);
//   });
//
// Functions throw Error. Those that are called in a group throw what is wrong with the call alone,
// and nothing of the group is begun then, nor of those that it is inside of, also if what was
// thrown is caught. Buffers live until the outermost group, or its request, has ended.
#pragma once

#include "occl.hpp"
#include "occl_transfer.h"

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace occl {

/// values become those of the receive of rank `peer`, which is as long. T is said.
template <class T>
void send(const Communicator &comm, Communicator::Input<T> values, uint32_t peer) {
  check(occlSend(values.data(), values.size(), dataTypeOf<T>(), peer, comm.handle(), nullptr));
}
template <class T>
void receive(const Communicator &comm, std::span<std::type_identity_t<T>> values, uint32_t peer) {
  check(occlRecv(values.data(), values.size(), dataTypeOf<T>(), peer, comm.handle(), nullptr));
}

namespace detail {

/// Nothing is begun of the group that this thread is in, if it is in one.
inline void refuseGroup() { occlSend(nullptr, 0, occlUint8, 0, nullptr, nullptr); } // is refused

/// Runs body() in a group of this thread. If it throws nothing of the group is begun.
template <class Body> void fillGroup(Body &body) {
  check(occlGroupStart());
  try {
    body();
  } catch (...) {
    refuseGroup();
    occlGroupEnd();
    throw;
  }
}

} // namespace detail

/// Runs body(), and then what it sends and receives, all together, to its end. Not at all if it
/// throws. May be used inside of body().
template <class Body> void group(Body body) {
  detail::fillGroup(body);
  check(occlGroupEnd());
}
/// The same, but only begins it. All is of `comm`, and buffers are the caller's again when the
/// request is complete. Not inside of a group.
template <class Body> Request groupAsync(const Communicator &comm, Body body) {
  detail::fillGroup(body);
  occlRequest_t request = 0;
  check(occlGroupEndAsync(comm.handle(), 0, nullptr, nullptr, &request));
  return Request(comm.handle(), request);
}

/// Counts and displacements of a buffer's parts, in elements, by rank.
struct Parts {
  std::vector<uint64_t> counts, displacements;

  /// One after the other.
  static Parts packed(std::vector<uint64_t> counts) {
    Parts parts{std::move(counts), {}};
    uint64_t end = 0;
    for (uint64_t count : parts.counts) {
      parts.displacements.push_back(end);
      end += count;
    }
    return parts;
  }
};

namespace detail {

/// Each rank has a part, which lies inside of the `length` elements.
inline void checkParts(const char *what, const Parts &parts, uint64_t length, uint32_t numRanks) {
  const auto fail = [&](const std::string &why) {
    refuseGroup();
    throw Error(occlInvalidArgument, std::string(what) + why);
  };
  if (parts.counts.size() != numRanks || parts.displacements.size() != numRanks)
    fail(" has " + std::to_string(parts.counts.size()) + " counts and " +
         std::to_string(parts.displacements.size()) + " displacements for " +
         std::to_string(numRanks) + " ranks");
  for (uint32_t r = 0; r < numRanks; ++r)
    if (parts.displacements[r] > length || parts.counts[r] > length - parts.displacements[r])
      fail(": the part of rank " + std::to_string(r) + " ends behind the buffer, which has " +
           std::to_string(length) + " elements");
}

} // namespace detail

/// Part q of rank r's `values` becomes part r of rank q's `result`.
template <class T>
void allToAllv(const Communicator &comm, Communicator::Input<T> values, const Parts &sent,
               std::span<std::type_identity_t<T>> result, const Parts &received) {
  detail::checkParts("allToAllv: sent", sent, values.size(), comm.numRanks());
  detail::checkParts("allToAllv: received", received, result.size(), comm.numRanks());
  check(occlAllToAllv(values.data(), sent.counts.data(), sent.displacements.data(), result.data(),
                      received.counts.data(), received.displacements.data(), dataTypeOf<T>(),
                      comm.handle(), nullptr));
}
/// values of rank r become part r of all `result`s.
template <class T>
void allGatherv(const Communicator &comm, Communicator::Input<T> values,
                std::span<std::type_identity_t<T>> result, const Parts &received) {
  detail::checkParts("allGatherv: received", received, result.size(), comm.numRanks());
  check(occlAllGatherv(values.data(), values.size(), result.data(), received.counts.data(),
                       received.displacements.data(), dataTypeOf<T>(), comm.handle(), nullptr));
}
/// The same for the root's `result` alone; that of others, and their `received`, are nothing.
template <class T>
void gatherv(const Communicator &comm, Communicator::Input<T> values,
             std::span<std::type_identity_t<T>> result, const Parts &received, uint32_t root) {
  if (comm.rank() == root)
    detail::checkParts("gatherv: received", received, result.size(), comm.numRanks());
  check(occlGatherv(values.data(), values.size(), result.data(), received.counts.data(),
                    received.displacements.data(), dataTypeOf<T>(), root, comm.handle(), nullptr));
}
/// Part r of the root's `values` becomes rank r's `result`; what others give of them is nothing.
template <class T>
void scatterv(const Communicator &comm, Communicator::Input<T> values, const Parts &sent,
              std::span<std::type_identity_t<T>> result, uint32_t root) {
  if (comm.rank() == root)
    detail::checkParts("scatterv: sent", sent, values.size(), comm.numRanks());
  check(occlScatterv(values.data(), sent.counts.data(), sent.displacements.data(), result.data(),
                     result.size(), dataTypeOf<T>(), root, comm.handle(), nullptr));
}

} // namespace occl
