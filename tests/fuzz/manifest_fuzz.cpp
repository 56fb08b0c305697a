// Any file: format detection, then the reader for that format.
#include "fuzz/check.h"
#include "weights/manifest/single_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const auto file = posenc::io::InputFile::of_bytes({reinterpret_cast<const char*>(data), size});
  try {
    posenc::testing::check_manifest(posenc::io::read_single_file(file), file);
  } catch (const posenc::WeightsError&) {
  }
  return 0;
}
