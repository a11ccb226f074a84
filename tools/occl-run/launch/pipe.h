// A pipe for what a process of the job writes.
#pragma once

#include <string>

namespace occl::run {

class Pipe {
public:
  Pipe();
  ~Pipe();
  Pipe(const Pipe &) = delete;
  Pipe &operator=(const Pipe &) = delete;

  int writeEnd() const { return ends[1]; }
  /// To poll; -1 once all writers are gone.
  int readEnd() const { return ends[0]; }
  void closeWriteEnd();
  /// What is there now; does not wait. Closes the read end once all writers are gone.
  std::string readSome();

private:
  int ends[2] = {-1, -1};
};

} // namespace occl::run
