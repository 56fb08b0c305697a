#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/check.h"
#include "weights/torch/make_zip.h"
#include "weights/torch/readers.h"

// The input is the JSON of the weights; an archive is built around it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace posenc;
  const std::string bytes = testing::make_zip({
      {"r/archive_format", "pt2"},
      {"r/archive_version", "0"},
      {"r/data/weights/model_weights_config.json",
       std::string(reinterpret_cast<const char*>(data), size)},
      {"r/data/weights/weight_0", std::string(64, '\1')},
      {"r/data/weights/weight_1", std::string(8, '\1')},
  });
  try {
    const auto file = io::InputFile::of_bytes(bytes);
    testing::check_manifest(io::read_archive(file), file);
  } catch (const WeightsError&) {
  }
  return 0;
}
