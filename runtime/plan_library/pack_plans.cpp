// pack_plans <list> <archive>: verifies plans of occlc and packs them (archive.h). A line of the
// list for each: class, collective, ranks, islands, limit or -, algorithm, file, with tabs in
// between; of a class, collective, number of ranks and of islands smallest sizes first. Algorithm
// "flat", which has no file: up to the limit what one island has. A part of the build.
#include "plan/io/reader.h"
#include "plan/model/hash.h"
#include "plan/verify/verifier.h"
#include "runtime/plan_library/columns.h"
#include "support/parallel.h"

#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace occl;

namespace {

[[noreturn]] void fail(const std::string &why) { throw std::runtime_error(why); }

struct Row {
  std::string planClass, collective, ranks, islands, limit, algorithm, file;

  bool isFlat() const { return algorithm == "flat"; }
};

struct Packed {
  uint64_t numBlocks = 0, hash = 0, bytes = 0, firstByte = 0;
  std::string frame;
};

std::vector<Row> rowsOf(const char *path) {
  std::ifstream file(path);
  if (!file)
    fail(std::string(path) + " cannot be read");
  std::vector<Row> rows;
  // The fields of a line, with tabs in between.
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    Row row;
    for (std::string *field : {&row.planClass, &row.collective, &row.ranks, &row.islands,
                               &row.limit, &row.algorithm, &row.file})
      if (!std::getline(fields, *field, '\t'))
        fail(std::string(path) + " has the line '" + line + "'");
    rows.push_back(row);
  }
  return rows;
}

/// Time is the build's, and a call that unpacks takes none for it.
std::string pack(const std::string &bytes) {
  constexpr int kLevel = 19;
  std::string frame(ZSTD_compressBound(bytes.size()), '\0');
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(),
                                                                     ZSTD_freeCCtx);
  // The last result is the size of the frame.
  size_t size = 0;
  const auto require = [&size](size_t result) {
    if (ZSTD_isError(result))
      fail(std::string("zstd: ") + ZSTD_getErrorName(result));
    size = result;
  };
  require(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel));
  // A checksum lets the reader find damage.
  require(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1));
  require(ZSTD_compress2(context.get(), frame.data(), frame.size(), bytes.data(), bytes.size()));
  frame.resize(size);
  return frame;
}

/// All that the runtime would have to look at again at a first call.
Packed packPlan(const Row &row) {
  const auto read = plan::readPlanFile(row.file);
  if (!read)
    fail(read.message());
  if (read->collective != row.collective || std::to_string(read->numRanks) != row.ranks ||
      read->root != 0)
    fail(row.file + " is for " + read->collective + " of " + std::to_string(read->numRanks) +
         " ranks from " + std::to_string(read->root));
  const plan::VerifyResult verified = plan::verifyPlan(*read, {.findSmallestDepth = false});
  if (!verified)
    fail(row.file + ": " + verified.text());
  const std::string columns = plan_library::toColumns(*read);
  const auto widest = std::ranges::max_element(read->ranks, {}, &plan::RankPlan::numThreadBlocks);
  return {widest->numThreadBlocks, plan::hashPlan(*read), columns.size(), 0, pack(columns)};
}

std::string indexOf(const std::vector<Row> &rows, const std::map<std::string, Packed> &byFile) {
  // Rows of a group stay in their order, smallest sizes first.
  std::map<std::string, std::string> groups; // the lines of each
  for (const Row &row : rows) {
    std::string &lines =
        groups[row.planClass + " " + row.collective + " " + row.ranks + " " + row.islands];
    if (row.isFlat()) {
      lines += "flat " + row.limit + "\n";
      continue;
    }
    const Packed &packed = byFile.at(row.file);
    lines += "plan " + row.limit + " " + row.algorithm;
    for (uint64_t number : {packed.numBlocks, packed.hash, packed.firstByte,
                            uint64_t{packed.frame.size()}, packed.bytes})
      lines += " " + std::to_string(number);
    lines += "\n";
  }
  // Groups one after the other, each with a line of its own in front.
  std::string index;
  for (const auto &[group, lines] : groups)
    index += "for " + group + "\n" + lines;
  return index;
}

void packAll(const char *list, const char *output) {
  support::setNumThreads(std::max(1u, static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN))));
  // Find the files, each of them once.
  const std::vector<Row> rows = rowsOf(list);
  std::map<std::string, Packed> byFile;
  std::vector<std::pair<const Row *, Packed *>> files; // each once, though several rows have it
  for (const Row &row : rows) {
    if (row.isFlat())
      continue;
    if (const auto [found, isNew] = byFile.try_emplace(row.file); isNew)
      files.emplace_back(&row, &found->second);
  }
  // Verification takes most of the time, so plans are packed in parallel.
  support::parallelFor(files.size(), ~0ull,
                       [&](size_t i) { *files[i].second = packPlan(*files[i].first); });
  // Frames follow each other; the index says where each begins.
  std::string frames;
  for (auto &[file, packed] : byFile) {
    packed.firstByte = frames.size();
    frames += packed.frame;
  }
  const std::string index = indexOf(rows, byFile);
  const std::string packedIndex = pack(index);
  std::ofstream archive(output, std::ios::binary);
  archive << "OCCL plans 5 " << packedIndex.size() << " " << index.size() << "\n"
          << packedIndex << frames;
  archive.close();
  if (!archive)
    fail(std::string(output) + " cannot be written");
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::cerr << "usage: pack_plans <list> <archive>\n";
    return 2;
  }
  try {
    packAll(argv[1], argv[2]);
  } catch (const std::exception &error) {
    std::cerr << "pack_plans: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
