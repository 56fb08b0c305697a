#include "io/safetensors/dtype.h"

#include <array>
#include <string>
#include <utility>

#include "io/base/quote.h"

namespace posenc::io {
namespace {

constexpr std::array<std::pair<std::string_view, Dtype>, 19> kDtypes = {{
    {"F32", Dtype::Float32},
    {"BF16", Dtype::BFloat16},
    {"F16", Dtype::Float16},
    {"I64", Dtype::Int64},
    {"F64", Dtype::Float64},
    {"I32", Dtype::Int32},
    {"I16", Dtype::Int16},
    {"I8", Dtype::Int8},
    {"U8", Dtype::UInt8},
    {"U16", Dtype::UInt16},
    {"U32", Dtype::UInt32},
    {"U64", Dtype::UInt64},
    {"BOOL", Dtype::Bool},
    {"C64", Dtype::Complex64},
    {"F8_E4M3", Dtype::Float8_e4m3fn},
    {"F8_E5M2", Dtype::Float8_e5m2},
    {"F8_E8M0", Dtype::Float8_e8m0fnu},
    {"F8_E4M3FNUZ", Dtype::Float8_e4m3fnuz},
    {"F8_E5M2FNUZ", Dtype::Float8_e5m2fnuz},
}};

}  // namespace

std::optional<Dtype> dtype_of_safetensors(std::string_view name) {
  for (const auto& [known, dtype] : kDtypes) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

WeightsError unknown_safetensors_dtype(std::string_view name) {
  if (name == "F4" || name.starts_with("F6_")) {
    return {WeightsErrorCode::Unsupported,
            "has dtype " + in_quotes(name) +
                ", less than a byte an element, which LibTorch cannot hold",
            "save it as F8_E4M3, F16 or F32"};
  }
  return {WeightsErrorCode::Unsupported, "has the unknown dtype " + in_quotes(name)};
}

std::string_view safetensors_dtype(Dtype dtype) {
  for (const auto& [name, known] : kDtypes) {
    if (known == dtype) return name;
  }
  return "";
}

}  // namespace posenc::io
