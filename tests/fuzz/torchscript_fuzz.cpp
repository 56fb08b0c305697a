#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/check.h"
#include "weights/torch/make_zip.h"
#include "weights/torch/readers.h"

// The input is a pickle and, after "#code", the code of its classes. An archive is built around
// them; torch_archive_fuzz and zip_index_fuzz test its structure.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace posenc;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t code = std::min(input.find("#code"), size);
  const std::string bytes = testing::make_zip({
      {"r/data.pkl", std::string(input.substr(0, code))},
      {"r/code/__torch__.py", std::string(input.substr(code))},
      {"r/constants.pkl", ""},
      {"r/data/0", std::string(64, '\1')},
      {"r/data/1", std::string(8, '\1')},
  });
  try {
    const auto file = io::InputFile::of_bytes(bytes);
    testing::check_manifest(io::read_archive(file), file);
  } catch (const WeightsError&) {
  }
  return 0;
}
