#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weights/torch/zip/index.h"
#include "weights/torch/zip/inflate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace posenc::io;
  try {
    const auto file = InputFile::of_bytes({reinterpret_cast<const char*>(data), size});
    const ZipIndex index(file);
    for (const ZipRecord& record : index.records()) {
      if (record.offset + record.packed > size) __builtin_trap();
      if (index.find(record.name) != &record) __builtin_trap();
      try {
        inflate(index, record, 1 << 20);
      } catch (const posenc::WeightsError&) {
      }
    }
  } catch (const posenc::WeightsError&) {
  }
  return 0;
}
