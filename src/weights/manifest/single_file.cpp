#include "weights/manifest/single_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "posenc/weights/error.h"
#include "weights/manifest/shards.h"
#include "weights/safetensors/reader.h"
#include "weights/torch/readers.h"
#include "weights/torch/zip/index.h"

namespace posenc::io {
namespace {

using namespace std::string_view_literals;

constexpr const char* kReadable =
    "save the weights as safetensors, or with torch.save(model.state_dict(), ...)";
constexpr const char* kGather =
    "gather it in Python: torch.distributed.checkpoint.format_utils.dcp_to_torch_save(folder, "
    "file)";
constexpr const char* kUnpack = "unpack it first";

struct Foreign {
  std::size_t offset;
  std::string_view magic;
  const char* name;
  const char* remedy;
};

// If one signature begins with another, the longer one comes first.
constexpr std::array<Foreign, 22> kKnownFormats = {{
    {4, "PTMF"sv, "a TorchScript flatbuffer",
     "load it in Python and save it again with torch.jit.save"},
    {4, "ET12"sv, "an ExecuTorch program", kReadable},
    {4, "TFL3"sv, "a TensorFlow Lite model", kReadable},
    {0, "GGUF"sv, "a GGUF file", kReadable},
    {0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file", kReadable},
    {0, "\x93NUMPY"sv, "a NumPy array", kReadable},
    {257, "ustar"sv, "a tar archive",
     "unpack it, or, where torch.load reads it as it is, save it again with torch.save"},
    {0, "\x1f\x8b"sv, "a gzip archive", kUnpack},
    {0, "BZh"sv, "a bzip2 archive", kUnpack},
    {0, "\xfd\x37zXZ\0"sv, "an xz archive", kUnpack},
    {0, "\x28\xb5\x2f\xfd"sv, "a Zstandard archive", kUnpack},
    {0, "\x04\x22\x4d\x18"sv, "an LZ4 archive", kUnpack},
    {0, "7z\xbc\xaf\x27\x1c"sv, "a 7z archive", kUnpack},
    {0, "Rar!\x1a\x07"sv, "a RAR archive", kUnpack},
    {13, "torch.distributed.checkpoint"sv, "the list of shards of PyTorch's distributed checkpoint",
     kGather},
    {0, "\x80\2"sv, "a Python pickle that is not of torch.save", kReadable},
    {0, "\x80\3"sv, "a Python pickle that is not of torch.save", kReadable},
    {0, "\x80\4"sv, "a Python pickle that is not of torch.save", kReadable},
    {0, "\x80\5"sv, "a Python pickle that is not of torch.save", kReadable},
    {0, "version https://git-lfs"sv, "a pointer of Git LFS in place of the file",
     "fetch the file with git lfs pull"},
    {0, "<!DOCTYPE"sv, "a web page in place of the file", "download the file itself"},
    {0, "<html"sv, "a web page in place of the file", "download the file itself"},
}};

// ONNX has no signature. Its writers start with the version (field 1) and their name (field 2).
bool looks_like_onnx(const InputFile& file) {
  constexpr std::size_t kFront = 4;
  const std::string front = file.read(0, std::min<uint64_t>(file.size(), 128));
  if (front.size() < kFront || front[0] != '\x08' || front[2] != '\x12') return false;
  const auto version = static_cast<unsigned char>(front[1]);
  const auto length = static_cast<unsigned char>(front[3]);
  if (version < 1 || version > 32 || length < 1 || front.size() <= kFront + length) return false;
  const bool named = std::all_of(front.begin() + kFront, front.begin() + kFront + length,
                                 [](char c) { return c >= ' ' && c <= '~'; });
  // The next field is text or a message as well: field 3 to 8, with a length.
  return named && std::string_view("\x1a\x22\x2a\x32\x3a\x42").find(front[kFront + length]) !=
                      std::string_view::npos;
}

// CTranslate2's model.bin starts with its version in four bytes, and with the length, in two, and
// the name of the model's class, which its writers end with "Spec" and a zero.
bool looks_like_ctranslate2(const InputFile& file) {
  constexpr std::size_t kFront = 6;
  const std::string front = file.read(0, std::min<uint64_t>(file.size(), 128));
  if (front.size() < kFront || front[0] < 1 || front[0] > 32 || front.substr(1, 3) != "\0\0\0"sv) {
    return false;
  }
  const auto length = static_cast<unsigned char>(front[4]);
  const std::string name = front.substr(kFront, length);
  return front[5] == '\0' && name.size() == length && name.ends_with("Spec\0"sv);
}

// Throws WeightsError: Unsupported, with its name and a remedy, if the first bytes identify the
// format, otherwise UnknownFormat.
[[noreturn]] void refuse_unknown_format(const InputFile& file) {
  for (const auto& [offset, magic, name, remedy] : kKnownFormats) {
    if (file.size() >= offset + magic.size() && file.read(offset, magic.size()) == magic) {
      throw WeightsError(WeightsErrorCode::Unsupported, std::string("is ") + name, remedy);
    }
  }
  if (looks_like_onnx(file)) {
    throw WeightsError(WeightsErrorCode::Unsupported, "looks like an ONNX model", kReadable);
  }
  if (looks_like_ctranslate2(file)) {
    throw WeightsError(WeightsErrorCode::Unsupported, "is a model of CTranslate2",
                       "load the model that it was converted from");
  }
  throw WeightsError(WeightsErrorCode::UnknownFormat,
                     "is of no known format: safetensors, its index, torch.save, TorchScript and "
                     ".pt2 can be read");
}

}  // namespace

Manifest read_single_file(const InputFile& file) {
  if (looks_like_zip(file)) return read_archive(file);
  if (looks_like_torch_legacy(file)) return read_torch_legacy(file);
  if (looks_like_safetensors(file)) return read_safetensors(file);
  if (looks_like_json(file)) {
    throw WeightsError(WeightsErrorCode::Shard,
                       "is an index of shards, where a single file is expected");
  }
  refuse_unknown_format(file);
}

bool looks_like_shard_index(const InputFile& file) {
  return looks_like_json(file) && !looks_like_safetensors(file);
}

}  // namespace posenc::io
