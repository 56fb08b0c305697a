#include "posenc/io/manifest.h"

#include <array>
#include <utility>

#include "io/base/context.h"
#include "io/manifest/open_weights.h"

namespace posenc {
namespace {

struct DtypeFacts {
  const char* name;
  int64_t bytes;
};

// In the order of Dtype.
constexpr std::array<DtypeFacts, 21> kDtypes = {{
    {"uint8", 1},          {"int8", 1},        {"int16", 2},           {"int32", 4},
    {"int64", 8},          {"uint16", 2},      {"uint32", 4},          {"uint64", 8},
    {"float16", 2},        {"bfloat16", 2},    {"float32", 4},         {"float64", 8},
    {"complex32", 4},      {"complex64", 8},   {"complex128", 16},     {"bool", 1},
    {"float8_e4m3fn", 1},  {"float8_e5m2", 1}, {"float8_e4m3fnuz", 1}, {"float8_e5m2fnuz", 1},
    {"float8_e8m0fnu", 1},
}};
static_assert(kDtypes.size() == static_cast<std::size_t>(Dtype::Float8_e8m0fnu) + 1);

}  // namespace

const char* dtype_name(Dtype dtype) { return kDtypes.at(static_cast<std::size_t>(dtype)).name; }

int64_t item_size(Dtype dtype) { return kDtypes.at(static_cast<std::size_t>(dtype)).bytes; }

const char* format_name(WeightsFormat format) {
  switch (format) {
    case WeightsFormat::Safetensors: return "safetensors";
    case WeightsFormat::SafetensorsIndex: return "safetensors index";
    case WeightsFormat::TorchSave: return "torch.save";
    case WeightsFormat::TorchSaveLegacy: return "torch.save (legacy)";
    case WeightsFormat::TorchScript: return "TorchScript";
    case WeightsFormat::Pt2: return "torch.export";
  }
  return "?";
}

Manifest read_manifest(const std::string& path) {
  return io::in_context("read_manifest", path,
                        [&] { return std::move(io::OpenWeights(path).manifest); });
}

}  // namespace posenc
