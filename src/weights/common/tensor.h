#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

#include "posenc/weights/manifest.h"

namespace posenc::io {

at::ScalarType scalar_type(ManifestDtype dtype);

/// nullopt for quantised types and those of single bits, which none of our file formats can hold.
std::optional<ManifestDtype> manifest_dtype(at::ScalarType type);

/// The name in torch, such as `float32`.
std::string type_name(at::ScalarType type);

/// Whether LoadOptions::cast() may convert `from` to `to`.
bool can_cast(at::ScalarType from, at::ScalarType to);

/// Whether one tensor is registered twice, or both are handles to the same memory.
bool same_memory(const at::Tensor& a, const at::Tensor& b);

/// Whether two tensors have the same dtype, sizes and bytes, conj and neg resolved.
bool same_bytes(const at::Tensor& a, const at::Tensor& b);

/// Strided and with data: not sparse, quantised, nested or on the meta device.
bool is_dense_with_data(const at::Tensor& tensor);

/// Why the values of a defined tensor cannot be read: "must ... Got ..."; empty if they can.
std::string refusal_of(const at::Tensor& tensor);

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
