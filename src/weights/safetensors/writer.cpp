#include "weights/safetensors/writer.h"

#include <bit>
#include <utility>

#include "weights/common/tensor.h"

// The formats are little-endian, and tensors are read and written as they are in memory.
static_assert(std::endian::native == std::endian::little);

namespace posenc::io {
namespace {

std::vector<SafetensorsEntry> entries_of(const StateDict& tensors) {
  std::vector<SafetensorsEntry> entries;
  for (const auto& item : tensors) {
    const ManifestDtype dtype = writable_dtype(item.key(), item.value());
    entries.push_back({item.key(), dtype, item.value().sizes().vec()});
  }
  return entries;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(StateDict tensors,
                                     const std::map<std::string, std::string>& metadata)
    : tensors_(std::move(tensors)),
      entries_(entries_of(tensors_)),
      layout_(lay_out_safetensors(entries_, metadata)) {}

std::string SafetensorsWriter::description(const std::set<std::string>& computed) const {
  std::string text;
  for (const auto& entry : entries_) {
    const bool is_computed = computed.count(entry.name) != 0;
    text += entry.name + " " + dtype_name(entry.dtype) + " " +
            (is_computed ? std::string("computed") : c10::str(entry.sizes)) + "\n";
  }
  return text;
}

void SafetensorsWriter::write(const std::string& path) const {
  in_file(path, [&] {
    AtomicFile file(path);
    write(file);
    file.commit();
  });
}

void SafetensorsWriter::write(AtomicFile& file) const {
  file.write(layout_.header.data(), layout_.header.size());
  for (const std::size_t i : layout_.order) {
    const at::Tensor bytes = contiguous_on_cpu(tensors_[i].value());
    file.write(bytes.const_data_ptr(), bytes.nbytes());
  }
}

}  // namespace posenc::io
