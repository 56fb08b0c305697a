#include "weights/convert.h"

#include <vector>

#include "base/text.h"
#include "posenc/weights/error.h"
#include "weights/common/file.h"
#include "weights/common/tensor_list.h"
#include "weights/safetensors/layout.h"

namespace posenc::io {
namespace {

SafetensorsLayout lay_out(const Manifest& manifest) {
  std::vector<SafetensorsEntry> entries;
  for (const auto& tensor : manifest.tensors) {
    entries.push_back({tensor.name, tensor.dtype, tensor.sizes});
  }
  auto metadata = manifest.metadata;
  metadata.emplace("format", "pt");  // Hugging Face's loaders refuse a file without it
  return lay_out_safetensors(entries, metadata);
}

}  // namespace

void check_convertible(const Manifest& manifest) {
  refuse_unreadable(manifest);
  const bool is_empty = manifest.tensors.empty();
  for (const auto& entry : manifest.opaque) {
    const bool is_lost =
        entry.kind == EntryKind::Container || (is_empty && !remedy_for(entry.kind).empty());
    if (!is_lost) continue;
    throw WeightsError(WeightsErrorCode::WholeModule,
                       (is_empty ? "holds no tensors but " : "holds ") + in_quotes(entry.name) +
                           ", " + entry.text + ", which only its Python code can load",
                       remedy_for(entry.kind));
  }
  if (is_empty) {
    throw WeightsError(WeightsErrorCode::Unsupported, "holds no tensors to be converted");
  }
}

uint64_t write_as_safetensors(const OpenWeights& weights, const std::string& path,
                              const std::function<void(uint64_t bytes, uint64_t of)>& progress) {
  const uint64_t total = weights.total_bytes();
  const auto layout = lay_out(weights.manifest);
  in_file(path, [&] {
    AtomicFile out(path);
    out.write(layout.header.data(), layout.header.size());
    uint64_t written = 0;
    for (const std::size_t i : layout.order) {
      weights.stream(weights.manifest.tensors[i], [&](const char* data, std::size_t count) {
        out.write(data, count);
        progress(written += count, total);
      });
    }
    weights.check_unchanged();
    out.commit();
  });
  return total;
}

}  // namespace posenc::io
