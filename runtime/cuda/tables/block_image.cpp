#include "runtime/cuda/tables/block_image.h"

#include "runtime/base/cache_line.h"
#include "runtime/cuda/tables/limits.h"
#include "runtime/exec/step/ready_tables.h"

#include <cstring>
#include <map>
#include <span>

namespace occl::cuda {

using namespace interpreter;

namespace {

/// Appends tables to an image and puts their offsets where their addresses will be.
class ImageWriter {
public:
  ImageWriter() : image(sizeof(ImageHeader)) {}

  template <class T, class U> void append(T *&pointer, const U &container) {
    std::span table(container);
    pointer = reinterpret_cast<T *>(image.size());
    size_t bytes = table.size_bytes();
    image.resize(alignUp(image.size() + bytes, 16));
    if (bytes != 0)
      std::memcpy(image.data() + reinterpret_cast<uintptr_t>(pointer), table.data(), bytes);
  }

  uint32_t size() const { return static_cast<uint32_t>(image.size()); }

  std::vector<char> finish(ImageHeader &header) && {
    header.bytes = size();
    std::memcpy(image.data(), &header, sizeof header);
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
  std::vector<BoundAcquire> acquires;
  std::vector<BoundRelease> releases;
  std::vector<ConnectionEnd> ends;
  std::vector<uint32_t> peers;
  std::vector<uint64_t> controls;
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
    if (bound.numInstructions != 0)
      stepMovesData = bound.movesData;
    const BoundOperand *operands = program.operands + bound.firstOperand;
    bound.firstOperand = static_cast<uint32_t>(tables.operands.size());
    for (uint32_t i = 0; i < uint32_t(bound.numSources) + bound.numDestinations; ++i) {
      BoundOperand operand = operands[i];
      if (operand.kind == plan::OperandKind::Connection)
        operand.end = end(operand.end);
      if (stepMovesData) // who only signals or waits has words
        tables.operands.push_back(operand);
    }
    // The instructions of a step have their words one after another.
    if (bound.numInstructions != 0) {
      copy(tables.acquires, program.acquires, bound.firstAcquire, bound.numAcquires);
      copy(tables.releases, program.releases, bound.firstRelease, bound.numReleases);
    }
    bound.numNeeds = 0;
    tables.instructions.push_back(bound);
  }

  template <class T>
  static void copy(std::vector<T> &to, const T *table, uint32_t &first, uint32_t number) {
    const T *from = table + first;
    first = static_cast<uint32_t>(to.size());
    to.insert(to.end(), from, from + number);
  }

  uint32_t end(uint32_t number) {
    auto [position, isNew] = ends.try_emplace(number, static_cast<uint32_t>(tables.ends.size()));
    if (isNew) {
      ConnectionEnd end = program.ends[number];
      const uint32_t *peers = program.peers + end.firstPeer;
      end.firstPeer = static_cast<uint32_t>(tables.peers.size());
      tables.peers.insert(tables.peers.end(), peers, peers + end.numPeers);
      tables.ends.push_back(end);
      controlsOf(end);
    }
    return position->second;
  }

  void controlsOf(const ConnectionEnd &end) {
    if (end.dataRank == program.rank && (program.line.bytes == 0 || end.isCounter))
      tables.controls.push_back(end.tailOffset);
    for (uint32_t p = 0; end.creditRank == program.rank && end.lastCredit != 0 && p < end.numPeers;
         ++p)
      tables.controls.push_back(end.headsOffset + p * kControlStride);
  }

  const Program &program;
  Tables &tables;
  bool stepMovesData = false;
  std::map<uint32_t, uint32_t> ends; // number in the program -> in the image
};

void appendReady(ImageWriter &writer, ImageHeader &header, uint32_t block, const Tables &tables) {
  if (isReadyForm(header.program, header.program.blocks[block])) {
    ReadyBlockTables ready = makeReadyTables(header.program, block);
    header.isMeasured = measureBeforehand(header.program, kPlaceAlignment, kAloneBytes, ready);
    header.ready = ready.view();
    writer.append(header.ready.steps, ready.steps);
    writer.append(header.ready.pieces, ready.pieces);
    writer.append(header.ready.sources, ready.sources);
    writer.append(header.ready.obstacles, ready.obstacles);
    header.isReady = writer.size() + tables.controls.size() * sizeof(uint64_t) + 16 +
                         header.ready.numSources * sizeof(ReadyWord) <=
                     kTableBytes;
  }
  writer.append(header.controls, tables.controls);
  header.readyBytes = writer.size();
}

void appendTables(ImageWriter &writer, ImageHeader &header, const Tables &tables) {
  bool contiguous = true;
  for (const BoundInstruction &instruction : tables.instructions)
    contiguous &= instruction.contiguous;
  writer.append(header.program.blocks, tables.blocks);
  writer.append(header.program.instructions, tables.instructions);
  writer.append(header.program.operands, tables.operands);
  writer.append(header.program.acquires, tables.acquires);
  writer.append(header.program.releases, tables.releases);
  writer.append(header.program.ends, tables.ends);
  writer.append(header.program.peers, tables.peers);
  // Only scattered pieces are looked up by their chunk.
  std::span chunkBegins(header.program.chunkBegins, contiguous ? 0 : header.program.partChunks + 1);
  writer.append(header.program.chunkBegins, chunkBegins);
}

} // namespace

std::vector<char> makeBlockImage(const Program &program, uint32_t block) {
  Tables tables;
  Extractor(program, tables).extract(block);
  ImageHeader header;
  header.program = program;
  header.numControls = static_cast<uint32_t>(tables.controls.size());
  if (program.line.bytes == 0) {
    tables.ends.clear();
    tables.peers.clear();
  }
  ImageHeader both = header;
  ImageWriter writer;
  appendReady(writer, both, block, tables);
  appendTables(writer, both, tables);
  if (both.isReady && writer.size() <= kTableBytes)
    return std::move(writer).finish(both);
  ImageWriter plain;
  plain.append(header.controls, tables.controls);
  appendTables(plain, header, tables);
  return std::move(plain).finish(header);
}

} // namespace occl::cuda
