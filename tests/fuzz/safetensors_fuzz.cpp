// The JSON of a safetensors header. Its length is prepended, because mutations would rarely match
// it.
#include <string>

#include "fuzz/check.h"
#include "weights/safetensors/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  constexpr std::size_t kDataBytes = 24;  // as in the largest case of safetensors.dict
  std::string bytes;
  for (unsigned i = 0; i < 8; ++i) bytes += static_cast<char>(size >> (8 * i) & 0xff);
  bytes.append(reinterpret_cast<const char*>(data), size);
  bytes.append(kDataBytes, '\1');
  const auto file = posenc::io::InputFile::of_bytes(bytes);
  try {
    posenc::testing::check_manifest(posenc::io::read_safetensors(file), file);
  } catch (const posenc::WeightsError&) {
  }
  return 0;
}
