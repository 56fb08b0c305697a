#include <cstddef>
#include <cstdint>

#include "io/read/torch/torch_files.h"
#include "manifest_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace posenc;
  try {
    const auto file = io::InputFile::of_bytes({reinterpret_cast<const char*>(data), size});
    fuzz::check(io::read_archive(file), size);
  } catch (const WeightsError&) {
  }
  return 0;
}
