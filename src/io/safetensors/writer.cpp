#include "io/safetensors/writer.h"

#include <bit>
#include <vector>

#include "io/base/atomic_file.h"
#include "io/base/writable.h"
#include "io/safetensors/layout.h"

// The formats are little-endian, and tensors are read and written as they are in memory.
static_assert(std::endian::native == std::endian::little);

namespace posenc::io {

void write_safetensors(const std::string& path, const StateDict& tensors,
                       const std::map<std::string, std::string>& metadata) {
  // Everything that can be refused is refused before a file exists.
  std::vector<SafetensorsEntry> entries;
  for (const auto& item : tensors) {
    const ManifestDtype dtype = writable_dtype(item.key(), item.value());
    entries.push_back({item.key(), dtype, item.value().sizes().vec()});
  }
  const auto layout = lay_out_safetensors(entries, metadata);

  AtomicFile file(path);
  file.write(layout.header.data(), layout.header.size());
  for (const std::size_t i : layout.order) {
    const at::Tensor bytes = contiguous_on_cpu(tensors[i].value());
    file.write(bytes.const_data_ptr(), bytes.nbytes());
  }
  file.commit();
}

}  // namespace posenc::io
