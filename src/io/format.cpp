#include "io/format.h"

#include <array>
#include <string>
#include <string_view>

#include "io/read/safetensors.h"
#include "io/read/zip/archive.h"

namespace posenc::io {
namespace {

using namespace std::string_view_literals;

constexpr const char* kReadable = "TorchScript (torch.jit.save) and safetensors can be read";

// Formats that are known by their first bytes and cannot be read.
struct Foreign {
  std::size_t offset;
  std::string_view magic;
  const char* name;
};
constexpr std::array<Foreign, 8> kForeign = {{
    {0, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv,
     "a torch.save file in the form before PyTorch 1.6"},
    {4, "PTMF"sv, "a TorchScript flatbuffer"},
    {0, "GGUF"sv, "a GGUF file"},
    {0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file"},
    {0, "\x93NUMPY"sv, "a NumPy array"},
    {0, "\x1f\x8b"sv, "a gzip archive"},
    {257, "ustar"sv, "a tar archive"},
    {0, "\x80"sv, "a Python pickle"},
}};

Format format_of_zip(const InputFile& file) {
  switch (Archive(file).format()) {
    case WeightsFormat::TorchScript: return Format::TorchScript;
    case WeightsFormat::Pt2:
      throw WeightsError(WeightsErrorCode::Unsupported, "is a .pt2 archive of torch.export",
                         kReadable);
    default:
      throw WeightsError(WeightsErrorCode::Unsupported, "is a torch.save file, not TorchScript",
                         kReadable);
  }
}

}  // namespace

Format detect_format(const InputFile& file) {
  if (looks_like_zip(file)) return format_of_zip(file);
  if (looks_like_safetensors(file)) return Format::Safetensors;
  for (const auto& [offset, magic, name] : kForeign) {
    if (file.size() >= offset + magic.size() && file.read(offset, magic.size()) == magic) {
      throw WeightsError(WeightsErrorCode::Corrupt, std::string("is ") + name + "; " + kReadable);
    }
  }
  throw WeightsError(WeightsErrorCode::Corrupt,
                     std::string("is of an unknown format; ") + kReadable);
}

}  // namespace posenc::io
