#include "io/base/writable.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "io/base/dtype.h"
#include "io/base/targets.h"
#include "posenc/io/error.h"
#include "torch_internals/lazy.h"

namespace posenc::io {

ManifestDtype writable_dtype(const std::string& name, const at::Tensor& tensor) {
  const auto refused = [&](const std::string& reason) {
    return WeightsError(WeightsErrorCode::Unsupported, reason).in_tensor(name);
  };
  if (!tensor.defined()) throw refused("is undefined");
  if (!is_dense_with_data(tensor)) {
    throw refused("must be dense and hold data. Got a sparse, quantised, nested or meta tensor");
  }
  const auto dtype = manifest_dtype(tensor.scalar_type());
  if (!dtype) throw refused("has dtype " + type_name(tensor.scalar_type()) + ", which no file has");
  if (!can_resolve(tensor)) {
    throw refused("must not have the negative bit, which LibTorch cannot resolve for " +
                  type_name(tensor.scalar_type()));
  }
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
