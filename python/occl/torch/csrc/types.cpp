#include "types.h"

#include <c10/util/Exception.h>

#include <algorithm>

namespace occl_torch {

namespace {

using c10d::ReduceOp;

std::optional<occlDataType_t> numbersOf(at::ScalarType type) {
  switch (type) {
  case at::kByte:
  case at::kBool:
    return occlUint8;
  case at::kChar:
    return occlInt8;
  case at::kInt:
    return occlInt32;
  case at::kLong:
    return occlInt64;
  case at::kUInt32:
    return occlUint32;
  case at::kUInt64:
    return occlUint64;
  case at::kHalf:
    return occlFloat16;
  case at::kBFloat16:
    return occlBfloat16;
  case at::kFloat:
  case at::kComplexFloat:
    return occlFloat32;
  case at::kDouble:
  case at::kComplexDouble:
    return occlFloat64;
  case at::kFloat8_e4m3fn:
    return occlFloat8E4m3;
  case at::kFloat8_e5m2:
    return occlFloat8E5m2;
  default:
    return std::nullopt;
  }
}

const char *nameOf(ReduceOp::RedOpType op) {
  static const char *const names[] = {"SUM",  "AVG", "PRODUCT", "MIN",       "MAX",
                                      "BAND", "BOR", "BXOR",    "PREMUL_SUM"};
  return op < ReduceOp::UNUSED ? names[op] : "UNUSED";
}

[[noreturn]] void refuse(at::ScalarType type, ReduceOp::RedOpType op) {
  C10_THROW_ERROR(ValueError, std::string("occl: cannot use ReduceOp.") + nameOf(op) + " with " +
                                  c10::toString(type) + " tensors");
}

std::string factorOf(at::ScalarType type, const ReduceOp &op) {
  const auto *supplement =
      dynamic_cast<const c10d::NCCLPreMulSumSupplement *>(op.supplement_.get());
  TORCH_CHECK(supplement, "occl: PREMUL_SUM comes from torch.distributed._make_nccl_premul_sum");
  at::Tensor factor = supplement->tensor_factor.defined()
                          ? supplement->tensor_factor.to(at::kCPU)
                          : at::scalar_tensor(supplement->double_factor, at::kDouble);
  const double wanted = factor.to(at::kDouble).item<double>();
  factor = factor.to(type).contiguous();
  if (at::isIntegralType(type, false) && factor.to(at::kDouble).item<double>() != wanted)
    C10_THROW_ERROR(ValueError, "occl: the factor " + std::to_string(wanted) +
                                    " of PREMUL_SUM is no " + c10::toString(type));
  return {static_cast<const char *>(factor.const_data_ptr()), factor.element_size()};
}

bool isBitwise(ReduceOp::RedOpType op) {
  return op == ReduceOp::BAND || op == ReduceOp::BOR || op == ReduceOp::BXOR;
}

// OCCL's bytes of 0 and 1: sums are "or", products are "and", as with PyTorch's NCCL backend.
Reduction reductionOfBool(ReduceOp::RedOpType op) {
  switch (op) {
  case ReduceOp::SUM:
  case ReduceOp::MAX:
  case ReduceOp::BOR:
    return {false, occlUint8, 1, occlMax, {}};
  case ReduceOp::PRODUCT:
  case ReduceOp::MIN:
  case ReduceOp::BAND:
    return {false, occlUint8, 1, occlMin, {}};
  case ReduceOp::BXOR:
    return {true, occlUint8, 1, occlSum, {}};
  default:
    refuse(at::kBool, op);
  }
}

} // namespace

Elements elementsOf(const at::Tensor &tensor) {
  const auto count = static_cast<uint64_t>(tensor.numel());
  const auto type = numbersOf(tensor.scalar_type());
  if (type && !tensor.is_complex())
    return {*type, count};
  if (type)
    return {*type, 2 * count};
  return {occlUint8, count * tensor.element_size()};
}

Reduction reductionOf(at::ScalarType type, const ReduceOp &reduceOp) {
  const auto op = static_cast<ReduceOp::RedOpType>(reduceOp);
  if (type == at::kBool)
    return reductionOfBool(op);
  if (isBitwise(op)) {
    if (!at::isIntegralType(type, false))
      refuse(type, op);
    return {true, occlUint8, 1, occlSum, {}};
  }
  const auto numbers = numbersOf(type);
  const bool complex = at::isComplexType(type);
  if (!numbers) {
    if (type != at::kShort || op == ReduceOp::PREMUL_SUM)
      refuse(type, op);
    return {true, occlUint8, 1, occlSum, {}};
  }
  const uint64_t perElement = complex ? 2 : 1;
  switch (op) {
  case ReduceOp::SUM:
    return {false, *numbers, perElement, occlSum, {}};
  case ReduceOp::AVG:
    return {false, *numbers, perElement, occlAvg, {}};
  case ReduceOp::PRODUCT:
  case ReduceOp::MIN:
  case ReduceOp::MAX:
    if (complex)
      refuse(type, op);
    return {false,
            *numbers,
            1,
            op == ReduceOp::MIN   ? occlMin
            : op == ReduceOp::MAX ? occlMax
                                  : occlProd,
            {}};
  case ReduceOp::PREMUL_SUM:
    if (complex)
      refuse(type, op);
    return {false, *numbers, 1, occlSum, factorOf(type, reduceOp)};
  default:
    refuse(type, op);
  }
}

void reduceLocally(const at::Tensor &parts, at::Tensor output, const ReduceOp &reduceOp) {
  at::NoGradGuard noGrad;
  const auto op = static_cast<ReduceOp::RedOpType>(reduceOp);
  at::Tensor sum = parts[0].clone();
  for (int64_t i = 1; i < parts.size(0); ++i)
    switch (op) {
    case ReduceOp::SUM:
    case ReduceOp::AVG:
      sum.add_(parts[i]);
      break;
    case ReduceOp::PRODUCT:
      sum.mul_(parts[i]);
      break;
    case ReduceOp::MIN:
      sum = at::minimum(sum, parts[i]);
      break;
    case ReduceOp::MAX:
      sum = at::maximum(sum, parts[i]);
      break;
    case ReduceOp::BAND:
      sum.bitwise_and_(parts[i]);
      break;
    case ReduceOp::BOR:
      sum.bitwise_or_(parts[i]);
      break;
    case ReduceOp::BXOR:
      sum.bitwise_xor_(parts[i]);
      break;
    default:
      refuse(parts.scalar_type(), op);
    }
  if (op == ReduceOp::AVG)
    sum.div_(parts.size(0), "trunc");
  // By place in memory, as OCCL reduces: both have one layout.
  at::from_blob(output.data_ptr(), {output.numel()}, output.options()).copy_(sum.view({-1}));
}

void checkTensor(const at::Tensor &tensor, const char *operation) {
  const std::string where = std::string("occl: ") + operation + ": ";
  if (!tensor.defined())
    C10_THROW_ERROR(ValueError, where + "a tensor is undefined");
  if (!tensor.device().is_cpu() && !tensor.device().is_cuda())
    C10_THROW_ERROR(ValueError, where + "the tensor is on " + tensor.device().str() +
                                    "; this backend takes tensors on CPUs and CUDA devices");
  if (tensor.layout() != at::kStrided)
    C10_THROW_ERROR(ValueError, where + "Tensors must be dense, not sparse");
  // What lies in memory is another number than the tensor's.
  if (tensor.is_conj() || tensor.is_neg())
    C10_THROW_ERROR(ValueError, where +
                                    "a tensor is a view that is conjugated or negated when it is "
                                    "read: use resolve_conj(), resolve_neg()");
  if (!tensor.is_contiguous(tensor.suggest_memory_format()))
    C10_THROW_ERROR(ValueError, where + "Tensors must be contiguous");
}

namespace {
bool haveOneOrder(const std::vector<at::Tensor> &tensors) {
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast,
                            at::MemoryFormat::ChannelsLast3d})
    if (std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor &tensor) {
          return tensor.numel() < 2 || tensor.is_contiguous(format);
        }))
      return true;
  return false;
}
} // namespace

void checkTensors(const std::vector<at::Tensor> &tensors, const char *operation) {
  if (tensors.empty())
    C10_THROW_ERROR(ValueError, std::string("occl: ") + operation + ": requires tensors");
  for (const at::Tensor &tensor : tensors) {
    checkTensor(tensor, operation);
    if (tensor.device() != tensors[0].device())
      C10_THROW_ERROR(ValueError, std::string("occl: ") + operation +
                                      ": Tensors must be on one device, not on " +
                                      tensors[0].device().str() + " and " + tensor.device().str());
    if (tensor.scalar_type() != tensors[0].scalar_type())
      C10_THROW_ERROR(TypeError, std::string("occl: ") + operation +
                                     ": Tensors must have identical type, not " +
                                     c10::toString(tensors[0].scalar_type()) + " and " +
                                     c10::toString(tensor.scalar_type()));
  }
  if (!haveOneOrder(tensors))
    C10_THROW_ERROR(ValueError, std::string("occl: ") + operation +
                                    ": Tensors must all be contiguous, or all of one memory format "
                                    "such as channels_last");
}

at::Tensor asInMemory(const at::Tensor &tensor) { return tensor.as_strided({tensor.numel()}, {1}); }

at::Tensor &only(std::vector<at::Tensor> &tensors, const char *operation) {
  if (tensors.size() != 1)
    C10_THROW_ERROR(ValueError, std::string("occl: ") + operation +
                                    ": requires one tensor for each rank, not " +
                                    std::to_string(tensors.size()));
  return tensors[0];
}

} // namespace occl_torch
