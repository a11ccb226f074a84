// Collectives with a plan of their own in OCCL, and how they are started.
#include "backend.h"

namespace occl_torch {

namespace {

// Collectives may be executed in any order among each other: the k-th of a group has id k % kIds.
constexpr uint64_t kIds = 32;

void checkSizes(bool fit, const char *operation, const char *what) {
  if (!fit)
    C10_THROW_ERROR(ValueError, std::string("occl: ") + operation + ": " + what);
}

bool overlap(const at::Tensor &a, const at::Tensor &b) {
  const auto *from = static_cast<const char *>(a.const_data_ptr());
  const auto *to = static_cast<const char *>(b.const_data_ptr());
  return from < to + b.nbytes() && to < from + a.nbytes();
}

} // namespace

void Backend::start(const WorkPtr &work, occlCall_t call, std::string scalar,
                    std::vector<uint8_t> keep) {
  auto part = std::make_shared<std::unique_ptr<Part>>(new Part{work, comm_, std::move(keep)});
  strand_->add([work, call, scalar = std::move(scalar), part, comm = comm_,
                next = next_]() mutable {
    Communicator::Use use(*comm);
    if (!use) {
      work->partEnded(comm->failure(work->name(), occlAborted));
      return true;
    }
    call.id = *next % kIds;
    call.name = work->name().c_str();
    call.callbacksNeverBlock = 1;
    call.scalar = scalar.empty() ? nullptr : scalar.data();
    occlRequest_t request = 0;
    Part *user = part->get();
    const occlResult_t result = occl().occlStart(use.handle(), &call, partCallback, user, &request);
    if (result == occlAgain)
      return false;
    if (result == occlSuccess) {
      part->release(); // the callback's
      ++*next;
      work->setRequest(request);
    } else {
      work->partEnded(comm->failure(work->name(), result));
    }
    return true;
  });
}

// A reduction of `count` elements a part; OCCL's, or by PyTorch of what all ranks have.
void Backend::startReduction(const WorkPtr &work, occlKind_t kind, const at::Tensor &input,
                             at::Tensor output, uint64_t count, const c10d::ReduceOp &op,
                             int64_t root, std::chrono::milliseconds limit) {
  const Reduction reduction = reductionOf(input.scalar_type(), op);
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = kind;
  call.timeoutMs = timeout(limit);
  call.sendBuffer = input.const_data_ptr();
  if (!reduction.gathered) {
    call.recvBuffer = output.data_ptr();
    call.count = count * reduction.perElement;
    call.dataType = reduction.type;
    call.op = reduction.op;
    call.root = static_cast<uint32_t>(root);
    return start(work, call, reduction.scalar);
  }
  const auto elements = static_cast<int64_t>(count);
  at::Tensor parts =
      at::empty({size_, elements}, input.options().memory_format(at::MemoryFormat::Contiguous));
  work->hold(parts);
  work->afterwards([parts, output, op, mine = kind != occlKindReduce || root == rank_] {
    if (mine)
      reduceLocally(parts, output, op);
  });
  call.kind = kind == occlKindReduceScatter ? occlKindAllToAll : occlKindAllGather;
  call.recvBuffer = parts.data_ptr();
  call.count = count * input.element_size();
  call.dataType = occlUint8;
  start(work, call);
}

// A collective that does not calculate. Its parts are of the size of `counted`.
void Backend::startCopy(const WorkPtr &work, occlKind_t kind, const at::Tensor &input,
                        const at::Tensor &output, const at::Tensor &counted, int64_t root,
                        std::chrono::milliseconds limit) {
  const Elements elements = elementsOf(counted);
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = kind;
  call.timeoutMs = timeout(limit);
  call.sendBuffer = input.const_data_ptr();
  call.recvBuffer = output.data_ptr();
  call.count = elements.count;
  call.dataType = elements.type;
  call.root = static_cast<uint32_t>(root);
  start(work, call);
}

c10::intrusive_ptr<Work> Backend::broadcast(Tensors &tensors,
                                            const c10d::BroadcastOptions &options) {
  usable("broadcast");
  at::Tensor &tensor = only(tensors, "broadcast");
  checkTensor(tensor, "broadcast");
  checkRoot(options.rootRank, "broadcast");
  if (tensor.is_cuda())
    return started(devices_->copy(how(c10d::OpType::BROADCAST, "broadcast", options),
                                  occlKindBroadcast, tensor, tensor, tensor.numel(),
                                  options.rootRank));
  auto work = newWork(c10d::OpType::BROADCAST, "broadcast", tensors, tensors);
  startCopy(work, occlKindBroadcast, tensor, tensor, tensor, options.rootRank, options.timeout);
  return started(work);
}

c10::intrusive_ptr<Work> Backend::allreduce(Tensors &tensors,
                                            const c10d::AllreduceOptions &options) {
  usable("all_reduce");
  at::Tensor &tensor = only(tensors, "all_reduce");
  checkTensor(tensor, "all_reduce");
  reductionOf(tensor.scalar_type(), options.reduceOp);
  if (tensor.is_cuda())
    return started(devices_->reduce(how(c10d::OpType::ALLREDUCE, "all_reduce", options),
                                    occlKindAllReduce, tensor, tensor, tensor.numel(),
                                    options.reduceOp, 0));
  auto work = newWork(c10d::OpType::ALLREDUCE, "all_reduce", tensors, tensors);
  startReduction(work, occlKindAllReduce, tensor, tensor, tensor.numel(), options.reduceOp, 0,
                 options.timeout);
  return started(work);
}

c10::intrusive_ptr<Work>
Backend::allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &options) {
  usable("all_reduce_coalesced");
  if (tensors.empty())
    C10_THROW_ERROR(ValueError, "occl: all_reduce_coalesced: requires tensors");
  return coalesce([&] {
    Tensors single(1);
    for (const at::Tensor &tensor : tensors) {
      single[0] = tensor;
      allreduce(single, options);
    }
  });
}

c10::intrusive_ptr<Work> Backend::reduce(Tensors &tensors, const c10d::ReduceOptions &options) {
  usable("reduce");
  at::Tensor &tensor = only(tensors, "reduce");
  checkTensor(tensor, "reduce");
  checkRoot(options.rootRank, "reduce");
  reductionOf(tensor.scalar_type(), options.reduceOp);
  if (tensor.is_cuda())
    return started(devices_->reduce(how(c10d::OpType::REDUCE, "reduce", options), occlKindReduce,
                                    tensor, tensor, tensor.numel(), options.reduceOp,
                                    options.rootRank));
  auto work = newWork(c10d::OpType::REDUCE, "reduce", tensors, tensors);
  startReduction(work, occlKindReduce, tensor, tensor, tensor.numel(), options.reduceOp,
                 options.rootRank, options.timeout);
  return started(work);
}

c10::intrusive_ptr<Work> Backend::_allgather_base(at::Tensor &output, at::Tensor &input,
                                                  const c10d::AllgatherOptions &options) {
  const char *const name = "all_gather_into_tensor";
  usable(name);
  checkTensors({input, output}, name);
  checkSizes(output.numel() == input.numel() * size_, name,
             "output tensor size must be equal to world_size times input tensor size");
  if (input.is_cuda())
    return started(devices_->copy(how(c10d::OpType::_ALLGATHER_BASE, name, options),
                                  occlKindAllGather, input, output, input.numel(), 0));
  auto work = newWork(c10d::OpType::_ALLGATHER_BASE, name, {input}, {output});
  startCopy(work, occlKindAllGather, input, output, input, 0, options.timeout);
  return started(work);
}

c10::intrusive_ptr<Work>
Backend::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                         const c10d::AllgatherOptions &options) {
  const char *const name = "all_gather_into_tensor_coalesced";
  usable(name);
  checkSizes(outputs.size() == inputs.size() && !inputs.empty(), name,
             "requires as many outputs as inputs, one at least");
  return coalesce([&] {
    for (size_t i = 0; i < inputs.size(); ++i)
      _allgather_base(outputs[i], inputs[i], options);
  });
}

c10::intrusive_ptr<Work> Backend::_reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                                       const c10d::ReduceScatterOptions &options) {
  const char *const name = "reduce_scatter_tensor";
  usable(name);
  checkTensors({input, output}, name);
  checkSizes(input.numel() == output.numel() * size_, name,
             "input tensor must be the same size as output size times world size");
  reductionOf(input.scalar_type(), options.reduceOp);
  at::Tensor source = overlap(input, output) ? input.clone() : input;
  return reduceScatterEven(c10d::OpType::_REDUCE_SCATTER_BASE, name, source, output, options);
}

c10::intrusive_ptr<Work> Backend::reduceScatterEven(c10d::OpType type, const char *name,
                                                    const at::Tensor &input,
                                                    const at::Tensor &output,
                                                    const c10d::ReduceScatterOptions &options) {
  if (input.is_cuda())
    return started(devices_->reduce(how(type, name, options), occlKindReduceScatter, input, output,
                                    output.numel(), options.reduceOp, 0));
  auto work = newWork(type, name, {input}, {output});
  startReduction(work, occlKindReduceScatter, input, output, output.numel(), options.reduceOp, 0,
                 options.timeout);
  return started(work);
}

c10::intrusive_ptr<Work>
Backend::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                         const c10d::ReduceScatterOptions &options) {
  const char *const name = "reduce_scatter_tensor_coalesced";
  usable(name);
  checkSizes(outputs.size() == inputs.size() && !inputs.empty(), name,
             "requires as many outputs as inputs, one at least");
  return coalesce([&] {
    for (size_t i = 0; i < inputs.size(); ++i)
      _reduce_scatter_base(outputs[i], inputs[i], options);
  });
}

// The parts may have different sizes: then each is a reduction to its rank.
c10::intrusive_ptr<Work> Backend::reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                                                 const c10d::ReduceScatterOptions &options) {
  const char *const name = "reduce_scatter";
  usable(name);
  at::Tensor &output = only(outputs, name);
  checkSizes(inputs.size() == 1 && inputs[0].size() == static_cast<size_t>(size_), name,
             "requires a list of an input for each rank");
  const Tensors &parts = inputs[0];
  Tensors all = parts;
  all.push_back(output);
  checkTensors(all, name);
  checkSizes(parts[rank_].numel() == output.numel(), name,
             "the input of this rank's part must have the size of the output");
  reductionOf(output.scalar_type(), options.reduceOp);
  at::NoGradGuard noGrad;
  Tensors flat;
  for (const at::Tensor &part : parts) {
    if (part.numel() != output.numel())
      return reduceScatterUneven(output, parts, options);
    flat.push_back(asInMemory(part));
  }
  return reduceScatterEven(c10d::OpType::REDUCE_SCATTER, name, at::cat(flat), output, options);
}

c10::intrusive_ptr<Work> Backend::reduceScatterUneven(const at::Tensor &output,
                                                      const Tensors &parts,
                                                      const c10d::ReduceScatterOptions &options) {
  const char *const name = "reduce_scatter";
  // Before `output` is written, which may overlap any of them.
  Tensors buffers;
  for (int root = 0; root < size_; ++root)
    buffers.push_back(root == rank_ ? output : parts[root].clone());
  const at::Tensor &part = parts[rank_];
  asInMemory(output).copy_(asInMemory(overlap(part, output) ? part.clone() : part));
  return coalesce([&] {
    for (int root = 0; root < size_; ++root) {
      const bool mine = root == rank_;
      const at::Tensor &own = buffers[root];
      if (own.is_cuda()) {
        auto work = devices_->reduce(how(c10d::OpType::REDUCE, name, options), occlKindReduce, own,
                                     own, own.numel(), options.reduceOp, root);
        if (!mine)
          work->dropResult();
        started(std::move(work));
        continue;
      }
      auto work = newWork(c10d::OpType::REDUCE, name, {own}, mine ? Tensors{own} : Tensors{});
      startReduction(work, occlKindReduce, own, own, own.numel(), options.reduceOp, root,
                     options.timeout);
      started(work);
    }
  });
}

c10::intrusive_ptr<Work> Backend::gather_single(at::Tensor &output, at::Tensor &input,
                                                const c10d::GatherOptions &options) {
  const char *const name = "gather_single";
  usable(name);
  checkTensor(input, name);
  checkRoot(options.rootRank, name);
  const bool root = options.rootRank == rank_;
  if (root) {
    checkTensors({input, output}, name);
    checkSizes(output.numel() == input.numel() * size_, name,
               "output tensor size must be equal to world_size times input tensor size");
  }
  if (input.is_cuda())
    return started(devices_->copy(how(c10d::OpType::GATHER, name, options), occlKindGather, input,
                                  root ? output : input, input.numel(), options.rootRank));
  auto work = newWork(c10d::OpType::GATHER, name, {input}, root ? Tensors{output} : Tensors{});
  startCopy(work, occlKindGather, input, root ? output : input, input, options.rootRank,
            options.timeout);
  return started(work);
}

c10::intrusive_ptr<Work> Backend::barrier(const c10d::BarrierOptions &options) {
  usable("barrier");
  if (!isAsync(
          options)) // then the host waits here, for what its stream has before the barrier, too
    devices_->drainCurrentStream();
  auto work = newWork(c10d::OpType::BARRIER, "barrier", {}, {});
  std::vector<uint8_t> bytes(2);
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = occlKindAllReduce;
  call.timeoutMs = timeout(options.timeout);
  call.sendBuffer = bytes.data();
  call.recvBuffer = bytes.data() + 1;
  call.count = 1;
  call.dataType = occlUint8;
  call.op = occlMax;
  start(work, call, {}, std::move(bytes));
  return started(work);
}

void Backend::monitoredBarrier(const c10d::BarrierOptions &options, bool) {
  barrier(options)->wait();
}

} // namespace occl_torch
