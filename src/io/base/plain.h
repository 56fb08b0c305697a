#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "posenc/io/manifest.h"

namespace posenc::io {

/// The dtype under which `tensor` can be written. Throws WeightsError that names the tensor where
/// it is undefined, not dense, without data or of a dtype that no format has.
ManifestDtype writable_dtype(const std::string& name, const at::Tensor& tensor);

/// The same values on the CPU, contiguous, conj and neg resolved: what is written.
at::Tensor plain(const at::Tensor& tensor);

}  // namespace posenc::io
