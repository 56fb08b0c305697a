#pragma once

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace posenc::parallel {

/// clip_grad_norm(), but returns the norm as a tensor without dimensions, and reads no value back
/// from a device. `max_norm` is positive. Messages name `caller`.
at::Tensor clip_norm(const torch::nn::Module& module, double max_norm, const char* caller);

}  // namespace posenc::parallel
