#include "io/base/dtype.h"

#include <algorithm>
#include <array>
#include <string>

#include "io/base/dtype_facts.h"

namespace posenc::io {
namespace {

#define POSENC_TYPE(dtype, name, bytes, safetensors, storage, is_saved, number, scalar_type) \
  at::ScalarType::scalar_type,
constexpr std::array kTypes = {POSENC_DTYPES(POSENC_TYPE)};
#undef POSENC_TYPE

bool is_unsigned(at::ScalarType type) {
  return type == at::kByte || type == at::kUInt16 || type == at::kUInt32 || type == at::kUInt64;
}

}  // namespace

at::ScalarType scalar_type(ManifestDtype dtype) {
  return kTypes.at(static_cast<std::size_t>(dtype));
}

std::optional<ManifestDtype> manifest_dtype(at::ScalarType type) {
  const auto* found = std::find(kTypes.begin(), kTypes.end(), type);
  if (found == kTypes.end()) return std::nullopt;
  return static_cast<ManifestDtype>(found - kTypes.begin());
}

std::string type_name(at::ScalarType type) {
  const auto known = manifest_dtype(type);
  return known ? dtype_name(*known) : c10::toString(type);
}

bool can_cast(at::ScalarType from, at::ScalarType to) {
  constexpr auto kPair = at::kFloat4_e2m1fn_x2;  // LibTorch has no conversions
  if (from == kPair || to == kPair) return from == to;
  if (at::isFloatingType(from)) return at::isFloatingType(to);
  if (at::isComplexType(from)) return at::isComplexType(to);
  if (!manifest_dtype(from) || !at::isIntegralType(to, /*includeBool=*/false)) return false;
  if (from == at::kBool) return true;
  const auto from_size = c10::elementSize(from), to_size = c10::elementSize(to);
  if (is_unsigned(from) == is_unsigned(to)) return to_size >= from_size;
  return is_unsigned(from) && to_size > from_size;
}

}  // namespace posenc::io
