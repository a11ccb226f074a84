#include "compiler/interchange/msccl/MscclExport.h"

#include <algorithm>
#include <ostream>

namespace occl::interchange::msccl {

namespace {

/// Text for an attribute's value.
std::string escaped(const std::string &text) {
  // XML's own characters; control characters are not allowed in it at all.
  std::string result;
  for (char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '"')
      result += "&quot;";
    else
      result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result;
}

const char *nameOf(plan::OperandKind buffer) {
  return buffer == plan::OperandKind::Input ? "i" : buffer == plan::OperandKind::Output ? "o" : "s";
}

const char *nameOf(plan::Protocol protocol) {
  return protocol == plan::Protocol::Simple ? "Simple"
         : protocol == plan::Protocol::LL   ? "LL"
                                            : "LL128";
}

void writeStep(const Step &step, size_t number, std::ostream &out) {
  // As the tools of the format write it: all attributes, needed or not.
  bool isNop = step.type == StepType::Nop;
  out << "      <step s=\"" << number << "\" type=\"" << shapeOf(step.type).name << "\" srcbuf=\""
      << (isNop ? "i" : nameOf(step.source.buffer)) << "\" srcoff=\"" << step.source.index
      << "\" dstbuf=\"" << (isNop ? "o" : nameOf(step.destination.buffer)) << "\" dstoff=\""
      << step.destination.index << "\" cnt=\"" << step.count << "\" depid=\""
      << step.dependencyBlock << "\" deps=\"" << step.dependencyStep << "\" hasdep=\""
      << (step.signals.value_or(false) ? 1 : 0) << "\"/>\n";
}

uint32_t numChannels(const Algorithm &algorithm) {
  uint32_t channels = 0;
  for (const Gpu &gpu : algorithm.gpus)
    for (const ThreadBlock &block : gpu.threadBlocks)
      channels = std::max(channels, block.channel + 1);
  return channels;
}

} // namespace

void writeAlgorithm(const Algorithm &algorithm, std::ostream &out) {
  // Attributes in the order in which those tools write them, so that files can be compared.
  out << "<algo name=\"" << escaped(algorithm.name) << "\" proto=\"" << nameOf(algorithm.protocol)
      << "\" nchannels=\"" << numChannels(algorithm) << "\" nchunksperloop=\""
      << algorithm.chunksPerLoop << "\" ngpus=\"" << algorithm.numGpus << "\" coll=\""
      << escaped(algorithm.collective) << "\" inplace=\"" << (algorithm.inPlace ? 1 : 0)
      << "\" outofplace=\"" << (algorithm.outOfPlace.value_or(true) ? 1 : 0) << "\" minBytes=\""
      << algorithm.minBytes.value_or(0) << "\" maxBytes=\""
      << algorithm.maxBytes.value_or(INT64_MAX) << "\">\n";
  for (const Gpu &gpu : algorithm.gpus) {
    out << "  <gpu id=\"" << gpu.id << "\" i_chunks=\"" << gpu.inputChunks << "\" o_chunks=\""
        << gpu.outputChunks << "\" s_chunks=\"" << gpu.scratchChunks << "\">\n";
    for (const ThreadBlock &block : gpu.threadBlocks) {
      out << "    <tb id=\"" << block.id << "\" send=\"" << block.sendPeer << "\" recv=\""
          << block.recvPeer << "\" chan=\"" << block.channel << "\">\n";
      for (size_t s = 0; s < block.steps.size(); ++s)
        writeStep(block.steps[s], s, out);
      out << "    </tb>\n";
    }
    out << "  </gpu>\n";
  }
  out << "</algo>\n";
}

std::vector<std::string> beyondRuntimes(const Algorithm &algorithm) {
  // The largest of each thing that runtimes have a limit for.
  size_t steps = 0, blocks = 0, chunks = 0;
  uint32_t count = 0;
  for (const Gpu &gpu : algorithm.gpus) {
    blocks = std::max(blocks, gpu.threadBlocks.size());
    chunks = std::max<size_t>({chunks, gpu.inputChunks, gpu.outputChunks, gpu.scratchChunks});
    for (const ThreadBlock &block : gpu.threadBlocks) {
      steps = std::max(steps, block.steps.size());
      for (const Step &step : block.steps)
        count = std::max(count, step.count);
    }
  }
  // From the sources of the runtimes.
  const struct {
    uint64_t value, limit;
    const char *what, *who;
  } limits[] = {
      {steps, 256, "steps in a thread block", "all MSCCL runtimes"},
      {numChannels(algorithm), 32, "channels", "all MSCCL runtimes"},
      {count, 71, "chunks in a step", "all MSCCL runtimes"},
      {chunks, 32767, "chunks in a buffer", "all MSCCL runtimes"},
      {blocks, 128, "thread blocks that others wait for", "all MSCCL runtimes (8-bit numbers)"},
      {blocks, 216, "thread blocks of a gpu", "microsoft/msccl"},
      {algorithm.name.size(), 63, "bytes of name", "all MSCCL runtimes"},
  };
  std::vector<std::string> lines;
  for (const auto &limit : limits)
    if (limit.value > limit.limit)
      lines.push_back(std::to_string(limit.value) + " " + limit.what + ", but " + limit.who +
                      " take at most " + std::to_string(limit.limit));
  // A flag of one runtime only.
  if (algorithm.inPlace && algorithm.outOfPlace.value_or(false))
    lines.push_back("both inplace and outofplace; microsoft/msccl does not know outofplace and "
                    "uses it in place only");
  return lines;
}

} // namespace occl::interchange::msccl
