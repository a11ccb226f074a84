// PyTorch's element types and operations as OCCL's.
#pragma once

#include <optional>

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "library.h"

namespace occl_torch {

/// `count` elements of `type`.
struct Elements {
  occlDataType_t type;
  uint64_t count;
};
/// The tensor's elements for operations that do not calculate; bytes where OCCL lacks the type.
Elements elementsOf(const at::Tensor &tensor);

/// How a reduction is executed.
struct Reduction {
  bool gathered; // OCCL cannot: inputs are collected and reduced by PyTorch
  occlDataType_t type;
  uint64_t perElement; // of OCCL's elements in one of PyTorch's: 2 for complex numbers
  occlRedOp_t op;
  std::string scalar; // the bytes of the factor of a pre-multiplied sum, else empty
};
/// Throws ValueError if PyTorch has no such operation for the type, or a factor is no number of it.
Reduction reductionOf(at::ScalarType type, const c10d::ReduceOp &op);

/// Reduces parts[0], parts[1] ... into `output`, as PyTorch does.
void reduceLocally(const at::Tensor &parts, at::Tensor output, const c10d::ReduceOp &op);

/// Throws ValueError or TypeError, as torch.distributed does, unless it is a dense tensor of CPUs
/// or of a CUDA device.
void checkTensor(const at::Tensor &tensor, const char *operation);
/// The same for all of them, that they have the type, and the device, of the first, and that their
/// elements lie in one order of dimensions: data go from place to place in memory.
void checkTensors(const std::vector<at::Tensor> &tensors, const char *operation);
/// The elements as they lie in memory, of a tensor that checkTensor() has passed.
at::Tensor asInMemory(const at::Tensor &tensor);
/// The only tensor of the list.
at::Tensor &only(std::vector<at::Tensor> &tensors, const char *operation);

} // namespace occl_torch
