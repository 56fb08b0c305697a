#include "io/safetensors/dtype.h"

#include <string>

#include "io/base/dtype_facts.h"
#include "io/base/quote.h"

namespace posenc::io {

std::optional<ManifestDtype> dtype_of_safetensors(std::string_view name) {
  if (name.empty()) return std::nullopt;
  return find_dtype([&](const DtypeFacts& facts) { return facts.safetensors == name; });
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

std::string_view safetensors_dtype(ManifestDtype dtype) { return facts_of(dtype).safetensors; }

}  // namespace posenc::io
