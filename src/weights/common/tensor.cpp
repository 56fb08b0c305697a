#include "weights/common/tensor.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "core/torch_internals/lazy.h"
#include "posenc/weights/error.h"
#include "weights/common/dtype_facts.h"

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

bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.is_same(b) ||
         (a.numel() > 0 && a.is_alias_of(b) && a.const_data_ptr() == b.const_data_ptr() &&
          a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
          a.strides() == b.strides() && a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg());
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const at::Tensor x = contiguous_on_cpu(a), y = contiguous_on_cpu(b);
  return x.nbytes() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

bool is_dense_with_data(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && !tensor.is_quantized() && !tensor.is_nested() &&
         !tensor.is_meta();
}

std::string refusal_of(const at::Tensor& tensor) {
  if (!is_dense_with_data(tensor)) {
    return "must be dense and hold data. Got a sparse, quantised, nested or meta tensor";
  }
  if (can_resolve(tensor)) return "";
  return "must not have the negative bit, which LibTorch cannot resolve for " +
         type_name(tensor.scalar_type());
}

ManifestDtype writable_dtype(const std::string& name, const at::Tensor& tensor) {
  const auto refused = [&](const std::string& reason) {
    return WeightsError(WeightsErrorCode::Unsupported, reason).in_tensor(name);
  };
  if (!tensor.defined()) throw refused("is undefined");
  const auto dtype = manifest_dtype(tensor.scalar_type());
  if (const auto rule = refusal_of(tensor); !rule.empty()) throw refused(rule);
  if (!dtype) throw refused("has dtype " + type_name(tensor.scalar_type()) + ", which no file has");
  return *dtype;
}

// Asks LibTorch instead of listing dtypes, since a newer one may have more.
bool can_resolve(const at::Tensor& tensor) {
  if (!tensor.is_neg() && !tensor.is_conj()) return true;
  const at::NoGradGuard no_grad;
  const at::Tensor value = at::empty({1}, tensor.options());
  const at::Tensor view = torch_internals::with_sign_bits(at::empty({1}, tensor.options()),
                                                          tensor.is_conj(), tensor.is_neg());
  try {
    view.copy_(value);
    view.resolve_conj().resolve_neg();
  } catch (const c10::Error&) {
    return false;
  }
  return true;
}

at::Tensor contiguous_on_cpu(const at::Tensor& tensor) {
  return tensor.detach().cpu().resolve_conj().resolve_neg().contiguous();
}

}  // namespace posenc::io
