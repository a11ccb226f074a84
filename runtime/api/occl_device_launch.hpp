// Whether a kernel that waits for partitions (occl_device.cuh) may be launched as it is: it holds
// its place on the device meanwhile, and what it waits for must not need that place. A header
// alone, C++17; for host code, with a form that asks CUDA where nvcc compiles it.
//
//   if (std::string why = occl::device::checkLaunch(part, occl::device::Waits::Unbounded, consume,
//                                                   blocks, threads);
//       !why.empty())
//     ... // fewer blocks, or occlPwaitOn and a kernel behind it
//
// Of a kernel that waits for several requests each is checked. Thread safety: any.
#ifndef OCCL_DEVICE_LAUNCH_HPP
#define OCCL_DEVICE_LAUNCH_HPP

#include "occl_partitioned_device.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace occl::device {

/// What a kernel does with a request.
///
/// Never: it marks, and asks at most (arrived()). It may be launched however large it is.
///
/// Bounded: it waits for some time, NotYet is no error to it, and a later kernel has the rest. It
/// may be launched however large it is, too, as its blocks make way by themselves.
///
/// Unbounded: it goes on only with what has arrived. All of its thread blocks have to be on the
/// device at a time, as those that have no place yet may be the ones to mark, here or on the rank
/// that waits for this one. That is checked for a device with nothing else on it: what other
/// streams and processes have there is the program's to know. Of a collective some multiprocessors
/// stay free besides, for the persistent kernel, which moves the data.
///
/// Neither kind of wait is for a collective that has one round: nothing of it need arrive before
/// all is marked, so a wait in the kernel that marks might be for itself.
enum class Waits { Never, Bounded, Unbounded };

/// Of the persistent kernel: one for each kind of call, of which there are four at most.
inline constexpr uint32_t kMultiprocessorsOfCollectives = 4;

/// A grid, and the device that it is for.
struct Launch {
  uint64_t blocks = 0;
  /// Thread blocks of this kernel that a multiprocessor has room for at a time, and how many of
  /// these the device has.
  uint32_t blocksPerMultiprocessor = 0, multiprocessors = 0;

  /// The largest grid all of which is on the device at a time. Beside a collective a multiprocessor
  /// has one block, since blocks are spread over all before one has two.
  uint64_t mostBlocks(bool isOfCollective) const {
    if (blocksPerMultiprocessor == 0)
      return 0;
    if (!isOfCollective)
      return uint64_t{blocksPerMultiprocessor} * multiprocessors;
    return multiprocessors > kMultiprocessorsOfCollectives
               ? multiprocessors - kMultiprocessorsOfCollectives
               : 0;
  }
};

/// "" if the kernel may be launched; else why not, with what would do. info: of occlPquery.
inline std::string checkLaunch(const occlPartInfo_t &info, Waits waits, const Launch &launch) {
  const bool isCollective = info.rounds != 0;
  if (waits == Waits::Never)
    return {};
  if (isCollective && info.arrivesEarly == 0)
    return "the collective has one round, so nothing of it need arrive before all is marked: ask "
           "for more rounds in occlPartConfig_t, or have the kernel that uses it behind "
           "occlPwaitOn";
  const uint64_t most = launch.mostBlocks(isCollective);
  if (waits == Waits::Bounded || launch.blocks <= most)
    return {};
  return "the kernel waits without bound, and has " + std::to_string(launch.blocks) +
         " thread blocks, of which " + std::to_string(most) + " are on the device at a time (" +
         std::to_string(launch.blocksPerMultiprocessor) + " on each of " +
         std::to_string(launch.multiprocessors) + " multiprocessors" +
         (isCollective ? ", but one each beside a collective, which needs " +
                             std::to_string(kMultiprocessorsOfCollectives)
                       : "") +
         "): the others might be those that mark. Launch fewer, or wait with a bound";
}

#ifdef __CUDACC__
/// The same of a kernel on the current device, which is the request's; or the error of occlPquery
/// or CUDA.
template <class... Arguments>
std::string checkLaunch(occlPart_t part, Waits waits, void (*kernel)(Arguments...), dim3 grid,
                        dim3 block, size_t sharedBytes = 0) {
  occlPartInfo_t info = OCCL_PART_INFO_INITIALIZER;
  if (occlPquery(part, &info) != occlSuccess)
    return occlGetLastError();
  int device = 0, multiprocessors = 0, blocks = 0;
  cudaError_t asked = cudaGetDevice(&device);
  if (asked == cudaSuccess)
    asked = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (asked == cudaSuccess)
    asked = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, kernel, static_cast<int>(block.x * block.y * block.z), sharedBytes);
  if (asked != cudaSuccess)
    return std::string("CUDA: ") + cudaGetErrorString(asked);
  return checkLaunch(info, waits,
                     {uint64_t{grid.x} * grid.y * grid.z, static_cast<uint32_t>(blocks),
                      static_cast<uint32_t>(multiprocessors)});
}
#endif

} // namespace occl::device

#endif // OCCL_DEVICE_LAUNCH_HPP
