#include "io/base/writable.h"

#include "io/base/dtype.h"
#include "io/base/targets.h"
#include "posenc/io/error.h"

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
  return *dtype;
}

at::Tensor contiguous_on_cpu(const at::Tensor& tensor) {
  return tensor.detach().cpu().resolve_conj().resolve_neg().contiguous();
}

}  // namespace posenc::io
