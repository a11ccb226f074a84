// Collectives of lists of CUDA tensors. Where all parts have one size they are one collective of
// OCCL's and copies by PyTorch, else transfers.
#include "../backend.h"

namespace occl_torch {

namespace {

bool haveSizeOf(const at::Tensor &one, const Tensors &tensors) {
  for (const at::Tensor &tensor : tensors)
    if (tensor.numel() != one.numel())
      return false;
  return true;
}

at::Tensor roomFor(const at::Tensor &one, int64_t count) {
  return at::empty({count, one.numel()}, one.options().memory_format(at::MemoryFormat::Contiguous));
}

// By place in memory, as the other ranks have them.
void distribute(const at::Tensor &rows, const Tensors &tensors) {
  at::NoGradGuard noGrad;
  for (size_t i = 0; i < tensors.size(); ++i)
    asInMemory(tensors[i]).copy_(rows[static_cast<int64_t>(i)]);
}

} // namespace

// All ranks have the sizes of all parts, so they decide alike.
c10::intrusive_ptr<Work> Backend::allgatherOnDevice(Tensors &outputs, const at::Tensor &input,
                                                    const DeviceHow &how) {
  if (haveSizeOf(input, outputs)) {
    at::Tensor rows = roomFor(input, size_);
    return started(devices_->copyAnd(how, occlKindAllGather, input, rows, input.numel(), 0, outputs,
                                     [rows, outputs] { distribute(rows, outputs); }));
  }
  std::vector<Piece> sends, receives;
  for (int peer = 0; peer < size_; ++peer) {
    sends.push_back({peer, input});
    receives.push_back({peer, outputs[peer]});
  }
  return started(devices_->transfer(how, sends, receives, outputs));
}

c10::intrusive_ptr<Work> Backend::gatherOnDevice(const Tensors &outputs, const at::Tensor &input,
                                                 int root, const DeviceHow &how) {
  if (rank_ != root)
    return started(
        devices_->copyAnd(how, occlKindGather, input, input, input.numel(), root, {}, nullptr));
  if (!haveSizeOf(input, outputs))
    C10_THROW_ERROR(ValueError, "occl: gather: CUDA tensors of a gather must have one size");
  at::Tensor rows = roomFor(input, size_);
  return started(devices_->copyAnd(how, occlKindGather, input, rows, input.numel(), root, outputs,
                                   [rows, outputs] { distribute(rows, outputs); }));
}

c10::intrusive_ptr<Work> Backend::scatterOnDevice(const at::Tensor &output, const Tensors &inputs,
                                                  int root, const DeviceHow &how) {
  if (rank_ != root)
    return started(devices_->copy(how, occlKindScatter, output, output, output.numel(), root));
  if (!haveSizeOf(output, inputs))
    C10_THROW_ERROR(ValueError, "occl: scatter: CUDA tensors of a scatter must have one size");
  at::NoGradGuard noGrad;
  at::Tensor rows = roomFor(output, size_);
  for (int peer = 0; peer < size_; ++peer)
    rows[peer].copy_(asInMemory(inputs[peer]));
  return started(devices_->copy(how, occlKindScatter, rows, output, output.numel(), root));
}

} // namespace occl_torch
