#include "posenc/positions/functional/relative_position_bias.h"

#include "posenc/positions/relative/bias.h"

namespace posenc::functional {
namespace {

relative::Buckets buckets_of(int64_t num_buckets, const RelativePositionFuncOptions& options) {
  return {num_buckets, options.max_distance(), options.bidirectional()};
}

}  // namespace

at::Tensor relative_position_buckets(const at::Tensor& relative_positions, int64_t num_buckets,
                                     const RelativePositionFuncOptions& options) {
  return relative_index(relative_positions, buckets_of(num_buckets, options));
}

at::Tensor relative_position_bias(const at::Tensor& weight, int64_t queries, int64_t keys,
                                  const RelativePositionFuncOptions& options) {
  TORCH_CHECK_VALUE(weight.dim() == 2,
                    "[RelativePositionBias] weight must be (num_buckets, num_heads). Got ",
                    weight.sizes());
  return posenc::relative_position_bias(weight, queries, keys, buckets_of(weight.size(0), options),
                                        options.offset());
}

}  // namespace posenc::functional
