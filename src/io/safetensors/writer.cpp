#include "io/safetensors/writer.h"

#include <bit>
#include <vector>

#include "io/base/file.h"
#include "io/base/tensor.h"
#include "io/safetensors/layout.h"
#include "parallel/collectives.h"

// The formats are little-endian, and tensors are read and written as they are in memory.
static_assert(std::endian::native == std::endian::little);

namespace posenc::io {
namespace {

// Names, dtypes and shapes, a line for each tensor.
std::string description(const std::vector<SafetensorsEntry>& entries, const GroupTensors& all) {
  std::string text;
  for (const auto& entry : entries) {
    const bool computed = all.computed.count(entry.name) != 0;
    text += entry.name + " " + dtype_name(entry.dtype) + " " +
            (computed ? std::string("computed") : c10::str(entry.sizes)) + "\n";
  }
  return text;
}

std::vector<SafetensorsEntry> entries_of(const StateDict& tensors) {
  std::vector<SafetensorsEntry> entries;
  for (const auto& item : tensors) {
    const ManifestDtype dtype = writable_dtype(item.key(), item.value());
    entries.push_back({item.key(), dtype, item.value().sizes().vec()});
  }
  return entries;
}

void write_laid_out(AtomicFile& file, const SafetensorsLayout& layout, const StateDict& tensors) {
  file.write(layout.header.data(), layout.header.size());
  for (const std::size_t i : layout.order) {
    const at::Tensor bytes = contiguous_on_cpu(tensors[i].value());
    file.write(bytes.const_data_ptr(), bytes.nbytes());
  }
}

}  // namespace

void write_safetensors(const std::string& path, const StateDict& tensors,
                       const std::map<std::string, std::string>& metadata) {
  write_safetensors(path, GroupTensors{tensors}, metadata, "");
}

void write_safetensors(AtomicFile& file, const StateDict& tensors,
                       const std::map<std::string, std::string>& metadata) {
  write_laid_out(file, lay_out_safetensors(entries_of(tensors), metadata), tensors);
}

void write_safetensors(const std::string& path, const GroupTensors& all,
                       const std::map<std::string, std::string>& metadata, const char* caller) {
  const RankGroup& group = all.group;
  // Everything that can be refused is refused before a file exists.
  SafetensorsLayout layout;
  std::string text;
  parallel::all_or_none(
      group,
      [&] {
        const auto entries = entries_of(all.tensors);
        layout = lay_out_safetensors(entries, metadata);
        text = description(entries, all);
      },
      caller);
  parallel::agree_on(group, text, caller);
  parallel::all_or_none(
      group,
      [&] {
        if (group.rank() != 0) return;
        in_file(path, [&] {
          AtomicFile file(path);
          write_laid_out(file, layout, all.tensors);
          file.commit();
        });
      },
      caller);
}

}  // namespace posenc::io
