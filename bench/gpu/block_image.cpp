#include "bench/gpu/block_image.h"

#include "runtime/base/cache_line.h"

#include <cstring>
#include <map>
#include <span>

namespace occl::bench {

using namespace interpreter;

namespace {

/// Appends tables to an image and puts their offsets where their addresses will be.
class ImageWriter {
public:
  ImageWriter() : image(sizeof(ImageHeader)) {}

  template <class T> void append(const T *&pointer, std::span<const T> table) {
    pointer = reinterpret_cast<const T *>(image.size());
    size_t bytes = table.size_bytes();
    image.resize(alignUp(image.size() + bytes, 16));
    if (bytes != 0)
      std::memcpy(image.data() + reinterpret_cast<uintptr_t>(pointer), table.data(), bytes);
  }

  std::vector<char> finish(const ImageHeader &header) && {
    std::memcpy(image.data(), &header, sizeof header);
    reinterpret_cast<ImageHeader *>(image.data())->bytes = static_cast<uint32_t>(image.size());
    return std::move(image);
  }

private:
  std::vector<char> image;
};

/// The tables of one block.
struct Tables {
  std::vector<BoundBlock> blocks;
  std::vector<BoundInstruction> instructions;
  std::vector<BoundOperand> operands;
  std::vector<BoundDependency> dependencies;
  std::vector<ConnectionEnd> ends;
  std::vector<uint32_t> peers;
};

class Extractor {
public:
  Extractor(const Program &program, Tables &tables) : program(program), tables(tables) {}

  void extract(uint32_t block) {
    tables.blocks.assign(program.blocks, program.blocks + program.numBlocks);
    uint32_t first = program.blocks[block].firstInstruction;
    for (uint32_t i = 0; i < program.blocks[block].numInstructions; ++i)
      instruction(program.instructions[first + i]);
    tables.blocks[block].firstInstruction = 0;
  }

private:
  void instruction(BoundInstruction bound) {
    const BoundOperand *operands = program.operands + bound.firstOperand;
    bound.firstOperand = static_cast<uint32_t>(tables.operands.size());
    for (uint32_t i = 0; i < uint32_t(bound.numSources) + bound.numDestinations; ++i) {
      BoundOperand operand = operands[i];
      if (operand.kind == plan::OperandKind::Connection)
        operand.end = end(operand.end);
      tables.operands.push_back(operand);
    }
    const BoundDependency *dependencies = program.dependencies + bound.firstDependency;
    bound.firstDependency = static_cast<uint32_t>(tables.dependencies.size());
    tables.dependencies.insert(tables.dependencies.end(), dependencies,
                               dependencies + bound.numDependencies);
    tables.instructions.push_back(bound);
  }

  uint32_t end(uint32_t number) {
    auto [position, isNew] = ends.try_emplace(number, static_cast<uint32_t>(tables.ends.size()));
    if (isNew) {
      ConnectionEnd end = program.ends[number];
      const uint32_t *peers = program.peers + end.firstPeer;
      end.firstPeer = static_cast<uint32_t>(tables.peers.size());
      tables.peers.insert(tables.peers.end(), peers, peers + end.numPeers);
      tables.ends.push_back(end);
    }
    return position->second;
  }

  const Program &program;
  Tables &tables;
  std::map<uint32_t, uint32_t> ends; // number in the program -> in the image
};

} // namespace

std::vector<char> makeBlockImage(const Program &program, uint32_t block) {
  Tables tables;
  Extractor(program, tables).extract(block);
  bool contiguous = true;
  for (const BoundInstruction &instruction : tables.instructions)
    contiguous &= instruction.contiguous;
  ImageHeader header;
  header.program = program;
  header.numEnds = static_cast<uint32_t>(tables.ends.size());
  ImageWriter writer;
  writer.append(header.program.blocks, std::span<const BoundBlock>(tables.blocks));
  writer.append(header.program.instructions,
                std::span<const BoundInstruction>(tables.instructions));
  writer.append(header.program.operands, std::span<const BoundOperand>(tables.operands));
  writer.append(header.program.dependencies, std::span<const BoundDependency>(tables.dependencies));
  writer.append(header.program.ends, std::span<const ConnectionEnd>(tables.ends));
  writer.append(header.program.peers, std::span<const uint32_t>(tables.peers));
  // Only scattered pieces are looked up by their chunk.
  writer.append(header.program.chunkBegins,
                std::span(program.chunkBegins, contiguous ? 0 : program.partChunks + 1));
  return std::move(writer).finish(header);
}

} // namespace occl::bench
