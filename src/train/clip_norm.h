#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace posenc::train {

/// Scales the gradients of the parameters down to `max_norm`, their norm taken over all of them:
/// torch.nn.utils.clip_grad_norm_ with its operations, and no value is read back from a device.
/// A parameter that is listed twice counts once. Sparse gradients count and are scaled as the dense
/// ones that they stand for; they are coalesced. Throws c10::TypeError, before anything changes,
/// for a gradient of another layout.
void clip_norm(const std::vector<at::Tensor>& parameters, double max_norm);

}  // namespace posenc::train
