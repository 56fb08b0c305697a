#include "io/base/dtype.h"

#include <algorithm>
#include <array>
#include <string>

namespace posenc::io {
namespace {

// In the order of Dtype.
constexpr std::array<at::ScalarType, 21> kTypes = {
    at::kByte,           at::kChar,         at::kShort,           at::kInt,
    at::kLong,           at::kUInt16,       at::kUInt32,          at::kUInt64,
    at::kHalf,           at::kBFloat16,     at::kFloat,           at::kDouble,
    at::kComplexHalf,    at::kComplexFloat, at::kComplexDouble,   at::kBool,
    at::kFloat8_e4m3fn,  at::kFloat8_e5m2,  at::kFloat8_e4m3fnuz, at::kFloat8_e5m2fnuz,
    at::kFloat8_e8m0fnu,
};
static_assert(kTypes.size() == static_cast<std::size_t>(Dtype::Float8_e8m0fnu) + 1);

bool is_unsigned(at::ScalarType type) {
  return type == at::kByte || type == at::kUInt16 || type == at::kUInt32 || type == at::kUInt64;
}

}  // namespace

at::ScalarType scalar_type(Dtype dtype) { return kTypes.at(static_cast<std::size_t>(dtype)); }

std::optional<Dtype> dtype_of(at::ScalarType type) {
  const auto* found = std::find(kTypes.begin(), kTypes.end(), type);
  if (found == kTypes.end()) return std::nullopt;
  return static_cast<Dtype>(found - kTypes.begin());
}

std::string type_name(at::ScalarType type) {
  const auto known = dtype_of(type);
  return known ? dtype_name(*known) : c10::toString(type);
}

bool can_cast(at::ScalarType from, at::ScalarType to) {
  if (at::isFloatingType(from)) return at::isFloatingType(to);
  if (at::isComplexType(from)) return at::isComplexType(to);
  if (!dtype_of(from) || !at::isIntegralType(to, /*includeBool=*/false)) return false;
  if (from == at::kBool) return true;
  const auto from_size = c10::elementSize(from), to_size = c10::elementSize(to);
  if (is_unsigned(from) == is_unsigned(to)) return to_size >= from_size;
  return is_unsigned(from) && to_size > from_size;
}

}  // namespace posenc::io
