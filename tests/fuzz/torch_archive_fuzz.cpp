#include <cstddef>
#include <cstdint>

#include "fuzz/check.h"
#include "weights/torch/readers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace posenc;
  try {
    const auto file = io::InputFile::of_bytes({reinterpret_cast<const char*>(data), size});
    testing::check_manifest(io::read_archive(file), file);
  } catch (const WeightsError&) {
  }
  return 0;
}
