#include "io/safetensors/dtype.h"

#include <string>

#include "io/base/dtype_facts.h"
#include "io/base/quote.h"

namespace posenc::io {

std::optional<ManifestDtype> dtype_of_safetensors(std::string_view name) {
  if (name.empty()) return std::nullopt;
  return find_dtype([&](const DtypeFacts& facts) { return facts.safetensors == name; });
}

int bits_of_safetensors(std::string_view name) {
  if (name == "F4") return 4;
  return name == "F6_E2M3" || name == "F6_E3M2" ? 6 : 0;
}

WeightsError unknown_safetensors_dtype(std::string_view name) {
  const char* const remedy = "save it as F8_E4M3, F16 or F32";
  switch (bits_of_safetensors(name)) {
    case 4:
      return {WeightsErrorCode::Unsupported,
              "has dtype 'F4' and a shape whose last axis is odd, and LibTorch holds pairs",
              remedy};
    case 6:
      return {WeightsErrorCode::Unsupported,
              "has dtype " + in_quotes(name) + ", which LibTorch lacks", remedy};
    default: break;
  }
  return {WeightsErrorCode::Unsupported, "has the unknown dtype " + in_quotes(name)};
}

std::string_view safetensors_dtype(ManifestDtype dtype) { return facts_of(dtype).safetensors; }

}  // namespace posenc::io
