#include "io/format.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "io/read/safetensors.h"
#include "io/zip_names.h"

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

// A record of a torch archive lies below one root folder of any name.
bool has_record(const std::vector<std::string>& names, std::string_view record) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const auto root = name.find('/');
    return root != std::string::npos && std::string_view(name).substr(root + 1) == record;
  });
}

Format format_of_zip(const InputFile& file) {
  const auto names = zip_names(file);
  if (has_record(names, "archive_format")) {
    throw WeightsError(WeightsErrorCode::Corrupt,
                       std::string("is a .pt2 archive of torch.export; ") + kReadable);
  }
  if (!has_record(names, "data.pkl")) {
    throw WeightsError(WeightsErrorCode::Corrupt,
                       std::string("is a zip archive, but not one of PyTorch; ") + kReadable);
  }
  if (!has_record(names, "constants.pkl")) {
    throw WeightsError(WeightsErrorCode::Corrupt,
                       std::string("is a torch.save file, not TorchScript; ") + kReadable);
  }
  return Format::TorchScript;
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
