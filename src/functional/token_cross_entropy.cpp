#include "posenc/functional/token_cross_entropy.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <c10/util/Exception.h>

namespace posenc::functional {

at::Tensor token_cross_entropy(const at::Tensor& logits, const at::Tensor& targets,
                               const TokenCrossEntropyFuncOptions& options) {
  const double smoothing = options.label_smoothing();
  TORCH_CHECK_VALUE(smoothing >= 0.0 && smoothing <= 1.0,
                    "[token_cross_entropy] label_smoothing must lie in [0, 1]. Got ", smoothing);
  TORCH_CHECK_TYPE(logits.is_floating_point(),
                   "[token_cross_entropy] logits must be real numbers. Got ", logits.scalar_type());
  TORCH_CHECK_TYPE(targets.scalar_type() == at::kLong,
                   "[token_cross_entropy] targets must be ids, int64. Got ", targets.scalar_type());
  TORCH_CHECK_VALUE(logits.dim() > 0 && logits.size(-1) > 0 &&
                        logits.sizes().slice(0, logits.dim() - 1) == targets.sizes(),
                    "[token_cross_entropy] logits must be (..., V), V > 0, and targets (...). Got ",
                    logits.sizes(), " and ", targets.sizes());
  return at::cross_entropy_loss(logits.reshape({-1, logits.size(-1)}),  // (N, V)
                                targets.reshape({-1}), {}, at::Reduction::Mean,
                                options.ignore_index(), smoothing);
}

}  // namespace posenc::functional
