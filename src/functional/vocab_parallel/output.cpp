#include <ATen/ops/linear.h>
#include <c10/util/Exception.h>

#include "functional/vocab_parallel/exchange.h"
#include "posenc/functional/vocab_parallel.h"

namespace posenc::functional {
namespace {

constexpr const char* kOutput = "vocab_parallel_output";

void check_output_layer(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  TORCH_CHECK_VALUE(
      weight.dim() == 2 && x.dim() > 0 && x.size(-1) == weight.size(1) && x.size(-1) > 0, "[",
      kOutput, "] x must be (..., D) and weight (last - first, D), D > 0. Got ", x.sizes(), " and ",
      weight.sizes());
  TORCH_CHECK_VALUE(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)), "[",
                    kOutput, "] bias must be (", weight.size(0), "). Got ", bias.sizes());
  TORCH_CHECK_TYPE(x.is_floating_point(), "[", kOutput, "] x must be real numbers. Got ",
                   x.scalar_type());
}

}  // namespace

at::Tensor vocab_parallel_output(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias, const RankGroup& group,
                                 RankTokens tokens) {
  const RowExchange exchange = start_exchange(group, tokens, kOutput, [&] {
    check_output_layer(x, weight, bias);
    return x.numel() / x.size(-1);
  });
  const at::Tensor own =
      tokens == RankTokens::Own ? x.reshape({x.numel() / x.size(-1), x.size(-1)}) : x;
  return at::linear(group.size() == 1 ? own : share_rows(exchange, own), weight, bias);
}

}  // namespace posenc::functional
