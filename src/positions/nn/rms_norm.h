#pragma once

#include "posenc/positions/nn/rms_norm.h"

namespace posenc {

/// What RMSNormImpl::forward() computes with the weight, which may be undefined, and the options of
/// a module.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight,
                       const RMSNormOptions& options);

}  // namespace posenc
