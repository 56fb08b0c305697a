#include "weights/manifest/manifest_text.h"

#include <algorithm>
#include <vector>

namespace posenc::testing {
namespace {

bool is_complex(ManifestDtype dtype) {
  return dtype == ManifestDtype::Complex32 || dtype == ManifestDtype::Complex64 ||
         dtype == ManifestDtype::Complex128;
}

void flip_sign(std::string& bytes, std::size_t end) { bytes[end - 1] ^= '\x80'; }

}  // namespace

std::string values(const io::InputFile& file, const Manifest& manifest,
                   const ManifestTensor& tensor) {
  const auto& storage = manifest.storages[tensor.storage];
  const auto item = static_cast<std::size_t>(item_size(tensor.dtype));
  int64_t count = 1;
  for (const int64_t size : tensor.sizes) count *= size;
  std::string out;
  std::vector<int64_t> index(tensor.sizes.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = tensor.offset;
    for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * tensor.strides[d];
    std::string bytes = file.read(storage.offset + static_cast<uint64_t>(at) * item, item);
    if (tensor.conj) flip_sign(bytes, item);
    if (tensor.negative) flip_sign(bytes, item);
    if (tensor.negative && is_complex(tensor.dtype)) flip_sign(bytes, item / 2);
    out += bytes;
    for (std::size_t d = index.size(); d-- > 0 && ++index[d] == tensor.sizes[d];) index[d] = 0;
  }
  return out;
}

std::string manifest_text(const io::InputFile& file, const Manifest& manifest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::vector<std::string> lines;
  for (const auto& tensor : manifest.tensors) {
    std::string line = tensor.name + " " + dtype_name(tensor.dtype) + " ";
    for (std::size_t d = 0; d < tensor.sizes.size(); ++d) {
      line += (d > 0 ? "," : "") + std::to_string(tensor.sizes[d]);
    }
    line += tensor.sizes.empty() ? "- " : " ";
    const std::string bytes = values(file, manifest, tensor);
    for (const char c : bytes) {
      line += kDigits[static_cast<unsigned char>(c) >> 4];
      line += kDigits[c & 0xf];
    }
    lines.push_back(line + (bytes.empty() ? "-\n" : "\n"));
  }
  for (const auto& entry : manifest.opaque) lines.push_back("opaque " + entry.name + "\n");
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const auto& line : lines) text += line;
  return text;
}

}  // namespace posenc::testing
