#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "posenc/io/manifest.h"

namespace posenc::io {

/// The dtype with which `tensor` can be written. Throws WeightsError naming the tensor if it is
/// undefined, not dense, without data, or of a dtype that no format has.
ManifestDtype writable_dtype(const std::string& name, const at::Tensor& tensor);

/// Whether LibTorch can copy values into and out of a tensor with the negative or the conjugate
/// bit: it has no negation of bools, of most unsigned integers and of float8. True of other
/// tensors.
bool can_resolve(const at::Tensor& tensor);

/// The tensor to write: the same values on the CPU, contiguous, with conj and neg resolved.
at::Tensor contiguous_on_cpu(const at::Tensor& tensor);

}  // namespace posenc::io
