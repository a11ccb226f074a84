// A rank that has nothing to do in a call: the others count on its having come so far all the same.
// One warp.
#include "runtime/cuda/kernels/in_stream_begin.cuh"
#include "runtime/cuda/kernels/in_stream_end.cuh"
#include "runtime/cuda/kernels/in_stream_kernels.h"

namespace occl::cuda {

namespace {

__global__ void __launch_bounds__(32) attend(const __grid_constant__ InStreamArguments arguments) {
  const DeviceCollective &collective = arguments.collective;
  // Read before the earlier work is over: words of other ranks only grow.
  const PeerWords early = loadPeer(collective);
  uint64_t number = 0;
  PeerBegin peer;
  awaitEarlierWork();
  Verdict verdict = claimNumber(collective, arguments.number, arguments.bound, number);
  if (verdict == Verdict::GoOn)
    tellBegin(arguments, number, arguments.buffers);
  // The kernel behind this one may be started; it waits for the end of this one by itself.
  letLaterWorkStart();
  if (verdict == Verdict::GoOn)
    verdict = awaitPeers(collective, arguments.bound, number, early, peer);
  // It has no data to wait for in vain: if the others call something else, nothing else says so.
  if (verdict == Verdict::GoOn)
    verdict = comparePeers(collective, arguments.bound, number);
  // The call is over on this rank once all others have come to it.
  if (verdict == Verdict::GoOn && laneOfWarp() == 0)
    countInvocation(arguments, number, 0);
}

int launchAttend(const InStreamArguments &arguments, const Launch &launch) {
  return launchKernel(attend, 32, arguments, launch);
}

} // namespace

const InStreamKernel kAttendKernel = {launchAttend, loadKernel<attend>};

} // namespace occl::cuda
