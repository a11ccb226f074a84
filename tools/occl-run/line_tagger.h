// Passes the output of one rank on, whole lines at a time, with its rank in front.
#pragma once

#include <cstdint>
#include <string>

namespace occl::run {

class LineTagger {
public:
  /// What is written to writeEnd() goes to `destination`, a file descriptor.
  LineTagger(uint32_t rank, int destination);
  ~LineTagger();
  LineTagger(const LineTagger &) = delete;
  LineTagger &operator=(const LineTagger &) = delete;

  int writeEnd() const { return ends[1]; }
  /// To poll; -1 once all writers are gone.
  int readEnd() const { return ends[0]; }
  void closeWriteEnd();

  /// Passes on what there is now; keeps an unfinished line back.
  void forward();
  /// Passes on all that there is, the unfinished line too.
  void finish();

private:
  void emitLines();

  std::string prefix;
  int destination;
  int ends[2] = {-1, -1}; // of a pipe: read, write
  std::string pending;
};

} // namespace occl::run
