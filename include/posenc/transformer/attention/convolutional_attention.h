#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <iosfwd>
#include <tuple>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/transformer/functional/attention_mask.h"

namespace posenc POSENC_EXPORT {

/// Options of ConvolutionalAttention.
struct ConvolutionalAttentionOptions {
  /// The options of ConvBERT for width `embed_dim` and `num_heads` heads.
  ConvolutionalAttentionOptions(int64_t embed_dim, int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads) {}

  /// Width E; a multiple of 2 num_heads.
  TORCH_ARG(int64_t, embed_dim);
  /// Number of heads of the attention, and as many of the convolution.
  TORCH_ARG(int64_t, num_heads);
  /// Number of tokens that the convolution sees, around each; odd.
  TORCH_ARG(int64_t, conv_kernel_size) = 9;
  /// Probability of zeroing an attention weight in training, in [0, 1).
  TORCH_ARG(double, dropout) = 0.0;

  POSENC_FIELDS(ConvolutionalAttentionOptions, embed_dim_, num_heads_, conv_kernel_size_);
  POSENC_TRAINING_FIELDS(dropout_);
};

/// Self-attention beside a convolution whose kernels are computed from the sequence: ConvBERT's
/// mixed attention. Half of the channels come from either.
///
/// With Dh = E / (2 H), and q, k, v of width H Dh: the attention is softmax(q k^T / sqrt(Dh)) v of
/// H heads. For the convolution, c = conv_out(x) has H heads too; the kernel of each token and head
/// is softmax(kernel(q * s)) over conv_kernel_size weights, where s is a separable convolution of
/// x, and the result the sum of the rows of c around the token, times these weights. Beyond the
/// ends are zeros. The convolution has no mask: padding is seen by the tokens near it.
///
/// x: (B, L, E)  ->  (B, L, E).
///
/// ```cpp
/// posenc::ConvolutionalAttention attention(posenc::ConvolutionalAttentionOptions(32, 4));
/// torch::Tensor y = attention->forward(torch::randn({2, 5, 32}));  // (2, 5, 32)
/// ```
///
/// Keys, with W = H Dh and K = conv_kernel_size: `in_proj_weight` (3 W, E), `in_proj_bias` (3 W),
/// `depthwise_weight` (E, K), `pointwise.weight` (W, E), `pointwise.bias` (W), `kernel.weight`
/// (H K, W), `kernel.bias` (H K), `conv_out.weight` (W, E), `conv_out.bias` (W), `out_proj.weight`
/// (E, E), `out_proj.bias` (E).
///
/// Errors: c10::ValueError for options that do not fit and sequences that are not (B, L, E).
///
/// Source: `ConvBertSelfAttention` in transformers 5.23.
class ConvolutionalAttentionImpl : public Cloneable<ConvolutionalAttentionImpl> {
 public:
  /// A module with the given options.
  explicit ConvolutionalAttentionImpl(ConvolutionalAttentionOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the mixed attention of x. `mask` is that of the attention.
  torch::Tensor forward(const torch::Tensor& x, const AttentionMask& mask = {});

  /// forward() and the weights of the attention, (B, H, L, L).
  std::tuple<torch::Tensor, torch::Tensor> forward_with_weights(const torch::Tensor& x,
                                                                const AttentionMask& mask = {});

  ConvolutionalAttentionOptions options;  ///< the options given to the constructor
  torch::Tensor in_proj_weight;           ///< (3 W, E): queries, keys, values
  torch::Tensor in_proj_bias;             ///< (3 W)
  torch::Tensor depthwise_weight;         ///< (E, K), of each channel
  torch::nn::Linear pointwise{nullptr};   ///< (E) to (W), after it
  torch::nn::Linear kernel{nullptr};      ///< (W) to (H K)
  torch::nn::Linear conv_out{nullptr};    ///< (E) to (W), which is convolved
  torch::nn::Linear out_proj{nullptr};    ///< (E) to (E)

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(AttentionMask())})

 private:
  torch::Tensor convolution(const torch::Tensor& x, const torch::Tensor& query) const;
  // forward(); stores the attention weights unless `shares` is null.
  torch::Tensor run(const torch::Tensor& x, const AttentionMask& mask, torch::Tensor* shares);
};

TORCH_MODULE(ConvolutionalAttention);

}  // namespace posenc
