// The tables of one thread block behind a header, with offsets in the place of pointers.
#include "runtime/cuda/tables/block_image.h"

#include "runtime/base/cache_line.h"
#include "runtime/cuda/tables/limits.h"
#include "runtime/exec/step/ready_tables.h"

#include <cstring>
#include <span>

namespace occl::cuda {

using namespace interpreter;

namespace {

/// Appends tables to an image and puts their offsets where their addresses will be.
class ImageWriter {
public:
  ImageWriter(const ReadyBlockTables &tables, std::pmr::memory_resource *memory) : image(memory) {
    // All at once, since memory of a monotonic buffer does not come back.
    image.reserve(sizeof(ImageHeader) + roomOf(tables.steps) + roomOf(tables.pieces) +
                  roomOf(tables.sources) + roomOf(tables.obstacles) +
                  tables.sources.size() * sizeof(ReadyWord));
    image.resize(sizeof(ImageHeader));
  }

  template <class T, class U> void append(T *&pointer, const U &container) {
    std::span table(container);
    // An offset, until relocate() makes an address of it.
    pointer = reinterpret_cast<T *>(image.size());
    size_t bytes = table.size_bytes();
    image.resize(alignUp(image.size() + bytes, 16));
    if (bytes != 0)
      std::memcpy(image.data() + reinterpret_cast<uintptr_t>(pointer), table.data(), bytes);
  }

  std::pmr::vector<char> finish(ImageHeader &header) && {
    // The words of sources follow the image; kernels fill them.
    header.bytes = static_cast<uint32_t>(image.size());
    std::memcpy(image.data(), &header, sizeof header);
    image.resize(roomBytes(header));
    return std::move(image);
  }

private:
  template <class T> static uint64_t roomOf(const std::pmr::vector<T> &table) {
    return alignUp(table.size() * sizeof(T), 16);
  }

  std::pmr::vector<char> image;
};

Program withoutTables(Program program) {
  program.blocks = nullptr;
  program.instructions = nullptr;
  program.operands = nullptr;
  program.acquires = nullptr;
  program.releases = nullptr;
  program.needs = nullptr;
  program.ends = nullptr;
  program.peers = nullptr;
  program.drains = nullptr;
  program.chunkBegins = nullptr;
  return program;
}

} // namespace

std::pmr::vector<char> makeBlockImage(const Program &program, uint32_t block,
                                      std::pmr::memory_resource *memory) {
  ReadyBlockTables ready = makeReadyTables(program, block, memory);
  ImageHeader header;
  header.program = withoutTables(program);
  header.isPerStep = ready.isPerStep;
  header.isMeasured = measureBeforehand(program, kPlaceAlignment, kAloneBytes, ready);
  // The header holds offsets once the tables are appended.
  header.ready = ready.view();
  ImageWriter writer(ready, memory);
  writer.append(header.ready.steps, ready.steps);
  writer.append(header.ready.pieces, ready.pieces);
  writer.append(header.ready.sources, ready.sources);
  writer.append(header.ready.obstacles, ready.obstacles);
  return std::move(writer).finish(header);
}

} // namespace occl::cuda
