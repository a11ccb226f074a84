// Collectives of lists of tensors, and those with sizes that only two ranks agree in: transfers
// from and to the tensors themselves.
#include "backend.h"

namespace occl_torch {

namespace {

void check(bool fit, const char *operation, const char *what) {
  if (!fit)
    C10_THROW_ERROR(ValueError, std::string("occl: ") + operation + ": " + what);
}

Tensors joined(Tensors some, const Tensors &others) {
  some.insert(some.end(), others.begin(), others.end());
  return some;
}

// What a rank sends to itself: of what it sends to others they alone know how much they take.
void checkOwn(const at::Tensor &input, const at::Tensor &output, const char *operation) {
  check(input.numel() == output.numel(), operation,
        "the output of this rank's part must have the size of its input");
}

// Views of the rows that go to, or come from, each rank.
Tensors rowsOf(const at::Tensor &tensor, const std::vector<int64_t> &splits, int size,
               const char *name) {
  const int64_t rows = tensor.dim() == 0 ? tensor.numel() : tensor.size(0);
  std::vector<int64_t> counts = splits;
  if (counts.empty()) {
    check(rows % size == 0, name, "Tensor's dim 0 does not divide equally across group size");
    counts.assign(size, rows / size);
  }
  check(counts.size() == static_cast<size_t>(size), name,
        "Number of tensor splits not equal to group size");
  int64_t sum = 0;
  for (const int64_t count : counts) {
    check(count >= 0, name, "Split sizes must not be negative");
    sum += count;
  }
  check(sum == rows, name, "Split sizes doesn't match total dim 0 size");
  Tensors parts;
  int64_t begin = 0;
  for (const int64_t count : counts) {
    parts.push_back(tensor.narrow(0, begin, count));
    begin += count;
  }
  return parts;
}

} // namespace

// Transfers are matched by pair alone. So that ranks that call something else are told so, at once
// and by name, a collective of the kind, of a byte from each rank, goes with them.
void Backend::startPieces(const WorkPtr &work, occlKind_t kind, int64_t root,
                          std::vector<Piece> sends, std::vector<Piece> receives,
                          std::chrono::milliseconds limit) {
  std::vector<uint8_t> bytes(2 * size_);
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = kind;
  call.timeoutMs = timeout(limit);
  call.sendBuffer = bytes.data();
  call.recvBuffer = bytes.data() + size_;
  call.count = 1;
  call.dataType = occlUint8;
  call.root = static_cast<uint32_t>(root);
  work->addParts(1);
  start(work, call, {}, std::move(bytes));
  auto part = std::make_shared<std::unique_ptr<Part>>(new Part{work, comm_, {}});
  strand_->add(
      [work, part, comm = comm_, sends = std::move(sends), receives = std::move(receives)] {
        Communicator::Use use(*comm);
        if (!use) {
          work->partEnded(comm->failure(work->name(), occlAborted));
          return true;
        }
        occl().occlGroupStart();
        for (const Piece &piece : receives) {
          const Elements elements = elementsOf(piece.tensor);
          occl().occlRecv(piece.tensor.data_ptr(), elements.count, elements.type, piece.peer,
                          use.handle(), nullptr);
        }
        for (const Piece &piece : sends) {
          const Elements elements = elementsOf(piece.tensor);
          occl().occlSend(piece.tensor.const_data_ptr(), elements.count, elements.type, piece.peer,
                          use.handle(), nullptr);
        }
        occlRequest_t request = 0;
        const occlResult_t result =
            occl().occlGroupEndAsync(use.handle(), 1, partCallback, part->get(), &request);
        if (result == occlAgain)
          return false;
        if (result == occlSuccess) {
          part->release(); // the callback's
          work->setRequest(request);
        } else {
          work->partEnded(comm->failure(work->name(), result));
        }
        return true;
      });
}

c10::intrusive_ptr<Work> Backend::allgather(std::vector<Tensors> &outputs, Tensors &inputs,
                                            const c10d::AllgatherOptions &options) {
  const char *const name = "all_gather";
  usable(name);
  at::Tensor &input = only(inputs, name);
  checkTensor(input, name);
  check(outputs.size() == 1 && outputs[0].size() == static_cast<size_t>(size_), name,
        "requires a list of an output for each rank");
  checkTensors(joined(outputs[0], {input}), name);
  checkOwn(input, outputs[0][rank_], name);
  if (input.is_cuda())
    return allgatherOnDevice(outputs[0], input, how(c10d::OpType::ALLGATHER, name, options));
  std::vector<Piece> sends, receives;
  for (int peer = 0; peer < size_; ++peer) {
    sends.push_back({peer, input});
    receives.push_back({peer, outputs[0][peer]});
  }
  auto work = newWork(c10d::OpType::ALLGATHER, name, inputs, outputs[0]);
  startPieces(work, occlKindAllGather, 0, std::move(sends), std::move(receives), options.timeout);
  return started(work);
}

c10::intrusive_ptr<Work> Backend::allgather_coalesced(std::vector<Tensors> &outputs,
                                                      Tensors &inputs,
                                                      const c10d::AllgatherOptions &options) {
  const char *const name = "all_gather_coalesced";
  usable(name);
  // outputs[rank][i] is inputs[i] of the rank.
  check(outputs.size() == static_cast<size_t>(size_) && !inputs.empty(), name,
        "requires a list of outputs for each rank, and inputs");
  for (const Tensors &ofRank : outputs)
    check(ofRank.size() == inputs.size(), name, "requires an output for each input");
  return coalesce([&] {
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::vector<Tensors> output(1);
      for (const Tensors &ofRank : outputs)
        output[0].push_back(ofRank[i]);
      Tensors input = {inputs[i]};
      allgather(output, input, options);
    }
  });
}

c10::intrusive_ptr<Work> Backend::gather(std::vector<Tensors> &outputs, Tensors &inputs,
                                         const c10d::GatherOptions &options) {
  const char *const name = "gather";
  usable(name);
  at::Tensor &input = only(inputs, name);
  checkTensor(input, name);
  checkRoot(options.rootRank, name);
  const int root = static_cast<int>(options.rootRank);
  std::vector<Piece> sends = {{root, input}}, receives;
  Tensors results;
  if (rank_ == root) {
    check(outputs.size() == 1 && outputs[0].size() == static_cast<size_t>(size_), name,
          "the root requires a list of an output for each rank");
    results = outputs[0];
    checkTensors(joined(results, {input}), name);
    checkOwn(input, results[root], name);
    for (int peer = 0; peer < size_; ++peer)
      receives.push_back({peer, results[peer]});
  } else {
    check(outputs.empty(), name, "only the root has outputs");
  }
  if (input.is_cuda())
    return gatherOnDevice(results, input, root, how(c10d::OpType::GATHER, name, options));
  auto work = newWork(c10d::OpType::GATHER, name, inputs, results);
  startPieces(work, occlKindGather, root, std::move(sends), std::move(receives), options.timeout);
  return started(work);
}

c10::intrusive_ptr<Work> Backend::scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                                          const c10d::ScatterOptions &options) {
  const char *const name = "scatter";
  usable(name);
  at::Tensor &output = only(outputs, name);
  checkTensor(output, name);
  checkRoot(options.rootRank, name);
  const int root = static_cast<int>(options.rootRank);
  std::vector<Piece> sends, receives = {{root, output}};
  Tensors held;
  if (rank_ == root) {
    check(inputs.size() == 1 && inputs[0].size() == static_cast<size_t>(size_), name,
          "the root requires a list of an input for each rank");
    held = inputs[0];
    checkTensors(joined(held, {output}), name);
    checkOwn(held[root], output, name);
    for (int peer = 0; peer < size_; ++peer)
      sends.push_back({peer, held[peer]});
  } else {
    check(inputs.empty(), name, "only the root has inputs");
  }
  if (output.is_cuda())
    return scatterOnDevice(output, held, root, how(c10d::OpType::SCATTER, name, options));
  auto work = newWork(c10d::OpType::SCATTER, name, held, outputs);
  startPieces(work, occlKindScatter, root, std::move(sends), std::move(receives), options.timeout);
  return started(work);
}

c10::intrusive_ptr<Work> Backend::alltoall(Tensors &outputs, Tensors &inputs,
                                           const c10d::AllToAllOptions &options) {
  const char *const name = "all_to_all";
  usable(name);
  check(outputs.size() == static_cast<size_t>(size_) && inputs.size() == outputs.size(), name,
        "requires lists of an input and an output for each rank");
  checkTensors(joined(inputs, outputs), name);
  checkOwn(inputs[rank_], outputs[rank_], name);
  std::vector<Piece> sends, receives;
  for (int peer = 0; peer < size_; ++peer) {
    sends.push_back({peer, inputs[peer]});
    receives.push_back({peer, outputs[peer]});
  }
  if (inputs[0].is_cuda())
    return started(
        devices_->transfer(how(c10d::OpType::ALLTOALL, name, options), sends, receives, outputs));
  auto work = newWork(c10d::OpType::ALLTOALL, name, inputs, outputs);
  startPieces(work, occlKindAllToAll, 0, std::move(sends), std::move(receives), options.timeout);
  return started(work);
}

c10::intrusive_ptr<Work> Backend::alltoall_base(at::Tensor &output, at::Tensor &input,
                                                std::vector<int64_t> &outputSplits,
                                                std::vector<int64_t> &inputSplits,
                                                const c10d::AllToAllOptions &options) {
  const char *const name = "all_to_all_single";
  usable(name);
  checkTensors({input, output}, name);
  const Tensors from = rowsOf(input, inputSplits, size_, name);
  const Tensors to = rowsOf(output, outputSplits, size_, name);
  checkOwn(from[rank_], to[rank_], name);
  std::vector<Piece> sends, receives;
  for (int peer = 0; peer < size_; ++peer) {
    sends.push_back({peer, from[peer]});
    receives.push_back({peer, to[peer]});
  }
  if (input.is_cuda()) {
    const DeviceHow called = how(c10d::OpType::ALLTOALL_BASE, name, options);
    // Ranks agree in whether they give splits, and without them have one collective.
    if (inputSplits.empty() && outputSplits.empty())
      return started(
          devices_->copy(called, occlKindAllToAll, input, output, input.numel() / size_, 0));
    return started(devices_->transfer(called, sends, receives, {output}));
  }
  auto work = newWork(c10d::OpType::ALLTOALL_BASE, name, {input}, {output});
  startPieces(work, occlKindAllToAll, 0, std::move(sends), std::move(receives), options.timeout);
  return started(work);
}

} // namespace occl_torch
