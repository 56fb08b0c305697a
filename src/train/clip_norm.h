#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace posenc::train {

/// Scales the gradients of the parameters so that their total norm is at most `max_norm`. Uses the
/// operations of torch.nn.utils.clip_grad_norm_, and reads no value back from a device. A parameter
/// that is listed twice counts once. Sparse gradients are coalesced, and count and scale like the
/// dense ones that they represent. Throws c10::TypeError for a gradient of another layout, before
/// anything changes.
void clip_norm(const std::vector<at::Tensor>& parameters, double max_norm);

}  // namespace posenc::train
