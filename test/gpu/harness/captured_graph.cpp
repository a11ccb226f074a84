#include "test/gpu/harness/captured_graph.h"

namespace occl::gpu_test {

namespace {

std::string failed(const char *what, cudaError_t error) {
  return error == cudaSuccess ? "" : std::string(what) + ": " + cudaGetErrorString(error);
}

} // namespace

CapturedGraph::~CapturedGraph() {
  if (executable != nullptr)
    cudaGraphExecDestroy(executable);
}

std::string CapturedGraph::capture(cudaStream_t stream, const std::function<std::string()> &work) {
  cudaGraph_t graph = nullptr;
  std::string wrong =
      failed("capture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  if (!wrong.empty())
    return wrong;
  wrong = work();
  if (std::string end = failed("end of capture", cudaStreamEndCapture(stream, &graph));
      wrong.empty())
    wrong = end;
  if (wrong.empty())
    wrong = failed("instantiate", cudaGraphInstantiate(&executable, graph, 0));
  if (graph != nullptr)
    cudaGraphDestroy(graph);
  if (wrong.empty())
    wrong = failed("upload", cudaGraphUpload(executable, stream));
  return wrong.empty() ? failed("upload", cudaStreamSynchronize(stream)) : wrong;
}

std::string CapturedGraph::replay(cudaStream_t stream) const {
  return failed("replay", cudaGraphLaunch(executable, stream));
}

} // namespace occl::gpu_test
