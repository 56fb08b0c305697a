#pragma once

#include <array>
#include <optional>

#include "posenc/weights/manifest.h"

namespace posenc::io {

// The dtypes in files and in LibTorch, in the order of ManifestDtype: the names in ManifestDtype
// and in torch, bytes per element, the name in safetensors ("" for none), torch's storage class,
// whether torch.save writes that class (otherwise it writes the dtype's name; TorchScript reads the
// class), torch.export's number (0 for none), and LibTorch's at::ScalarType.
// clang-format off
#define POSENC_DTYPES(X) \
  X(UInt8, "uint8", 1, "U8", "ByteStorage", true, 1, Byte) \
  X(Int8, "int8", 1, "I8", "CharStorage", true, 2, Char) \
  X(Int16, "int16", 2, "I16", "ShortStorage", true, 3, Short) \
  X(Int32, "int32", 4, "I32", "IntStorage", true, 4, Int) \
  X(Int64, "int64", 8, "I64", "LongStorage", true, 5, Long) \
  X(UInt16, "uint16", 2, "U16", "UInt16Storage", false, 28, UInt16) \
  X(UInt32, "uint32", 4, "U32", "UInt32Storage", false, 34, UInt32) \
  X(UInt64, "uint64", 8, "U64", "UInt64Storage", false, 35, UInt64) \
  X(Float16, "float16", 2, "F16", "HalfStorage", true, 6, Half) \
  X(BFloat16, "bfloat16", 2, "BF16", "BFloat16Storage", true, 13, BFloat16) \
  X(Float32, "float32", 4, "F32", "FloatStorage", true, 7, Float) \
  X(Float64, "float64", 8, "F64", "DoubleStorage", true, 8, Double) \
  X(Complex32, "complex32", 4, "", "ComplexHalfStorage", false, 9, ComplexHalf) \
  X(Complex64, "complex64", 8, "C64", "ComplexFloatStorage", true, 10, ComplexFloat) \
  X(Complex128, "complex128", 16, "", "ComplexDoubleStorage", true, 11, ComplexDouble) \
  X(Bool, "bool", 1, "BOOL", "BoolStorage", true, 12, Bool) \
  X(Float8_e4m3fn, "float8_e4m3fn", 1, "F8_E4M3", "Float8_e4m3fnStorage", false, 29, Float8_e4m3fn) \
  X(Float8_e5m2, "float8_e5m2", 1, "F8_E5M2", "Float8_e5m2Storage", false, 30, Float8_e5m2) \
  X(Float8_e4m3fnuz, "float8_e4m3fnuz", 1, "F8_E4M3FNUZ", "Float8_e4m3fnuzStorage", false, 31, Float8_e4m3fnuz) \
  X(Float8_e5m2fnuz, "float8_e5m2fnuz", 1, "F8_E5M2FNUZ", "Float8_e5m2fnuzStorage", false, 32, Float8_e5m2fnuz) \
  X(Float8_e8m0fnu, "float8_e8m0fnu", 1, "F8_E8M0", "Float8_e8m0fnuStorage", false, 33, Float8_e8m0fnu) \
  X(Float4_e2m1fn_x2, "float4_e2m1fn_x2", 1, "F4", "Float4_e2m1fn_x2Storage", false, 0, Float4_e2m1fn_x2)
// clang-format on

struct DtypeFacts {
  ManifestDtype dtype;
  const char* name;
  int64_t bytes;
  const char* safetensors;
  const char* storage_class;
  bool is_saved_by_class;
  int64_t export_number;
};

#define POSENC_FACTS(dtype, name, bytes, safetensors, storage, is_saved, number, scalar_type) \
  DtypeFacts{ManifestDtype::dtype, name, bytes, safetensors, storage, is_saved, number},
inline constexpr std::array kDtypes = {POSENC_DTYPES(POSENC_FACTS)};
#undef POSENC_FACTS
static_assert(kDtypes.size() == static_cast<std::size_t>(ManifestDtype::Float4_e2m1fn_x2) + 1);

inline const DtypeFacts& facts_of(ManifestDtype dtype) {
  return kDtypes.at(static_cast<std::size_t>(dtype));
}

/// The dtype whose facts match; nullopt if there is none.
template <typename Matches>
std::optional<ManifestDtype> find_dtype(Matches matches) {
  for (const DtypeFacts& facts : kDtypes) {
    if (matches(facts)) return facts.dtype;
  }
  return std::nullopt;
}

}  // namespace posenc::io
