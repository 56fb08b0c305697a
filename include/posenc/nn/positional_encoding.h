#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/pimpl.h>

#include <optional>

#include "posenc/core/cloneable.h"
#include "posenc/core/growth_lock.h"
#include "posenc/sinusoid/options.h"

namespace posenc {

struct PositionalEncodingOptions {
  PositionalEncodingOptions(int64_t d_model, int64_t max_len = 5000)
      : d_model_(d_model), max_len_(max_len), sinusoid_(d_model) {}

  TORCH_ARG(int64_t, d_model);
  /// Rows of the table, in positions.
  TORCH_ARG(int64_t, max_len);
  /// Probability with which an element of the sum is zeroed in training, in [0, 1).
  TORCH_ARG(double, dropout) = 0.0;
  /// x is (B, L, D); false: (L, B, D).
  TORCH_ARG(bool, batch_first) = true;
  /// A position past the table makes it longer, device and dtype kept, instead of failing.
  TORCH_ARG(bool, grow) = false;
  /// Which sinusoid; its dim must be d_model.
  TORCH_ARG(SinusoidOptions, sinusoid);
};

/// Adds a sinusoidal encoding of its position to each row: dropout(x + pe[0, offset : offset + L]).
///
/// x: (B, L, D) or (L, D); (L, B, D) with batch_first(false)  ->  as x.
/// Key: buffer `pe` (1, max_len, d_model). Converted to another dtype it is rounded once, from the
/// recipe. Forward may run in several threads at a time, growth included.
/// Errors: functional::positional_encoding(). Source: notebooks 00 and 03 `PositionalEncoding`.
class PositionalEncodingImpl : public Cloneable<PositionalEncodingImpl> {
 public:
  explicit PositionalEncodingImpl(int64_t d_model, int64_t max_len = 5000)
      : PositionalEncodingImpl(PositionalEncodingOptions(d_model, max_len)) {}
  explicit PositionalEncodingImpl(PositionalEncodingOptions options_);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  using torch::nn::Module::to;
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Dtype dtype, bool non_blocking = false) override;

  /// `offset`: the position of x's first row. `position_ids`: explicit positions instead, (L) or
  /// laid out as x without its last axis. With grow(true) they make the table grow only on devices
  /// that report a bad index (CPU): reading them back elsewhere would stop the device.
  torch::Tensor forward(const torch::Tensor& x, int64_t offset = 0,
                        const torch::Tensor& position_ids = {});

  /// The table that serves positions 0 .. rows-1, grown first where that is allowed and needed.
  /// (1, >= rows, D); later growth does not touch the returned tensor.
  torch::Tensor table(int64_t rows);

  PositionalEncodingOptions options;
  torch::Tensor pe;
  torch::nn::Dropout dropout{nullptr};

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(int64_t{0})},
                           {2, torch::nn::AnyValue(torch::Tensor())})

 private:
  void grow_to(int64_t rows);

  GrowthLock lock_;
};

TORCH_MODULE(PositionalEncoding);

}  // namespace posenc
