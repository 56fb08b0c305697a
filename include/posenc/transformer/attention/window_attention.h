#pragma once

#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <iosfwd>
#include <tuple>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/transformer/attention/window_options.h"

namespace posenc POSENC_EXPORT {

/// Options of WindowAttention.
struct WindowAttentionOptions {
  /// The options for width `embed_dim` and `num_heads` heads; of `windows`, the size of a window
  /// and the positions matter here.
  WindowAttentionOptions(int64_t embed_dim, int64_t num_heads, WindowOptions windows)
      : embed_dim_(embed_dim), num_heads_(num_heads), windows_(windows) {}

  /// Width E, a multiple of num_heads.
  TORCH_ARG(int64_t, embed_dim);
  /// Number of heads.
  TORCH_ARG(int64_t, num_heads);
  /// The windows.
  TORCH_ARG(WindowOptions, windows);
  /// Whether queries, keys and values have a bias.
  TORCH_ARG(bool, qkv_bias) = true;
  /// Whether keys have one where the others do; otherwise its rows of in_proj_bias are zeros
  /// without a gradient: Swin v2.
  TORCH_ARG(bool, key_bias) = true;
  /// Probability of zeroing an attention weight in training, in [0, 1).
  TORCH_ARG(double, dropout) = 0.0;

  POSENC_FIELDS(WindowAttentionOptions, embed_dim_, num_heads_, windows_, qkv_bias_, key_bias_);
  POSENC_TRAINING_FIELDS(dropout_);
};

/// Self-attention in windows of a grid, whose scores depend on the places of tokens in their
/// window.
///
/// With q, k, v of H heads of width Dh, and a mask m of each window, which must be of real numbers
/// (otherwise a c10::TypeError): scores = q.k / sqrt(Dh) +
/// (table + m) with WindowPositions::Table; cos(q, k) min(exp(logit_scale), 100) + 16
/// sigmoid(network) + m + m with Continuous, where transformers adds the mask twice and checkpoints
/// were trained so; q.k / sqrt(Dh) + q.rel_pos_h + q.rel_pos_w with Axes; q.k / sqrt(Dh) with None.
///
/// x: (B, windows, N, E)  ->  the same shape; N: the tokens of a window.
///
/// ```cpp
/// posenc::WindowAttention attention(
///     posenc::WindowAttentionOptions(32, 4, posenc::WindowOptions({3, 3})));
/// torch::Tensor map = torch::randn({2, 6, 6, 32});
/// torch::Tensor y = attention->forward(
///     posenc::functional::window_partition(map, {3, 3}));  // (2, 4, 9, 32)
/// ```
///
/// Keys: `in_proj_weight` (3 E, E), `in_proj_bias` (3 E), `out_proj.weight` (E, E), `out_proj.bias`
/// (E); `relative_position_bias_table` ((2 h - 1) (2 w - 1), H); or `logit_scale` (H, 1, 1),
/// `coordinates.weight` (512, 2), `coordinates.bias` (512), `entries.weight` (H, 512), which
/// files have as `continuous_position_bias_mlp.0` and `.2`; or `rel_pos_h` (2 h - 1, Dh),
/// `rel_pos_w` (2 w - 1, Dh).
///
/// Errors: c10::ValueError for options that do not fit, for windows that are not (B, windows, N, E)
/// and a mask of another shape.
///
/// Source: `SwinAttention`, `Swinv2SelfAttention` and `SamVisionAttention` in transformers 5.23.
class WindowAttentionImpl : public Cloneable<WindowAttentionImpl> {
 public:
  /// A module with the given options.
  explicit WindowAttentionImpl(WindowAttentionOptions options_);

  void reset() override;
  /// Draws new initial weights; tables are zeros.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the attention of each window. `mask`, (windows, N, N), real, is added to the scores;
  /// it may be undefined.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask = {});
  /// forward() and the weights, (B, windows, H, N, N): in training after the dropout, as in Swin,
  /// or with WindowPositions::None and Axes before it, as in SAM.
  std::tuple<torch::Tensor, torch::Tensor> forward_with_weights(const torch::Tensor& x,
                                                                const torch::Tensor& mask = {});

  /// What all windows add to their scores, (1, H, N, N); undefined with other positions than
  /// WindowPositions::Table and Continuous.
  torch::Tensor position_bias() const;

  WindowAttentionOptions options;              ///< the options given to the constructor
  torch::Tensor in_proj_weight;                ///< (3 E, E): queries, keys, values
  torch::Tensor in_proj_bias;                  ///< (3 E), undefined with qkv_bias(false)
  torch::nn::Linear out_proj{nullptr};         ///< (E, E)
  torch::Tensor relative_position_bias_table;  ///< of WindowPositions::Table; undefined as others
  torch::Tensor logit_scale;                   ///< (H, 1, 1), of Continuous
  torch::nn::Linear coordinates{nullptr},      ///< (2) to (512), of Continuous
      entries{nullptr};                        ///< (512) to (H), of Continuous
  torch::Tensor rel_pos_h,                     ///< (2 height - 1, Dh), of Axes
      rel_pos_w;                               ///< (2 width - 1, Dh), of Axes
  torch::nn::Dropout dropout{nullptr};         ///< of the weights

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(torch::Tensor())})

 private:
  torch::Tensor run(const torch::Tensor& x, const torch::Tensor& mask, torch::Tensor* shares);
  torch::Tensor weights(const torch::Tensor& q, const torch::Tensor& k,
                        const torch::Tensor& mask) const;
  void register_positions();
};

TORCH_MODULE(WindowAttention);

}  // namespace posenc
