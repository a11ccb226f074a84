// Runs a fuzz target on the files below the folders that are named: what fuzzing has found stays
// found.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv) {
  size_t files = 0;
  for (int i = 1; i < argc; ++i)
    for (const auto &entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file())
        continue;
      std::printf("%s\n", entry.path().c_str());
      std::fflush(stdout); // the last one before a crash is it
      std::ifstream file(entry.path(), std::ios::binary);
      std::string bytes(std::istreambuf_iterator<char>(file), {});
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
      ++files;
    }
  if (files == 0)
    std::fprintf(stderr, "there is no input\n");
  return files > 0 ? 0 : 1;
}
