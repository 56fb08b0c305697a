#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/pimpl.h>

#include "posenc/core/fields.h"
#include "posenc/core/opaque.h"
#include "posenc/positions/nn/embedding_options.h"
#include "posenc/positions/nn/table_module.h"

namespace posenc {
struct PositionalEncodingAccess;  // private
}

namespace posenc POSENC_EXPORT {

struct PositionalEncodingState;
extern template class detail::Opaque<PositionalEncodingState>;

/// Options of PositionalEncoding.
struct PositionalEncodingOptions : PositionOptions<PositionalEncodingOptions> {
  /// The default options for these sizes.
  PositionalEncodingOptions(int64_t d_model, int64_t max_len = 5000)
      : PositionOptions(max_len), d_model_(d_model), sinusoid_(d_model) {}

  /// Width of x.
  TORCH_ARG(int64_t, d_model);
  /// The sinusoid; its dim must be d_model.
  TORCH_ARG(SinusoidOptions, sinusoid);

  POSENC_FIELDS(PositionalEncodingOptions, max_len_, table_source_, batch_first_, grow_, d_model_,
                sinusoid_);
  POSENC_TRAINING_FIELDS(dropout_);
};

/// Adds sinusoidal encodings of their positions to rows: dropout(x + pe[0, offset : offset + L]).
///
/// x: (B, L, D) or (L, D); (L, B, D) with batch_first(false)  ->  as x.
///
/// The table is created in the default dtype, like weights; when converted to another dtype it is
/// recomputed from the recipe and rounded once. Without a table, the row of position p is the row
/// that a table would have, including start and step of the sinusoid. forward() may be called from
/// several threads at a time, even if the table grows.
///
/// TableSource::Buffer never waits for a GPU. The other two compute rows on the CPU and send them
/// to the device in each forward, without waiting; explicit positions on the device are first
/// copied to the CPU, which waits for it. With Precision::Exact and half precision, modified values
/// in `pe` are detected if the write raises the tensor's version (copy_(), loading), but not after
/// one by pointer or through `.data()`. The table of a module made in InferenceMode, where tensors
/// have no version, is compared in each call instead.
///
/// The gradient of a `pe` that requires one is summed for explicit positions as TokenEmbedding's.
///
/// ```cpp
/// posenc::PositionalEncoding encoding(/*d_model=*/32, /*max_len=*/128);
/// torch::Tensor vectors = torch::randn({2, 3, 32});
/// torch::Tensor x = encoding->forward(vectors);  // (B, L, 32)
/// ```
///
/// Keys: buffer `pe` (1, max_len, d_model), with TableSource::Buffer only.
///
/// Errors: those of functional::positional_encoding(); at construction, c10::ValueError for a
/// sinusoid whose rows depend on the table's length, unless that is fixed; for growth of a table
/// that requires a gradient, c10::ValueError; without a table, c10::TypeError and c10::IndexError
/// for positions as in a look-up.
///
/// Source: the reference class `PositionalEncoding` in notebooks_ref (00_input_embedding.ipynb).
class PositionalEncodingImpl : public TableModule<PositionalEncodingImpl> {
 public:
  /// A module with the default options.
  explicit PositionalEncodingImpl(int64_t d_model, int64_t max_len = 5000)
      : PositionalEncodingImpl(PositionalEncodingOptions(d_model, max_len)) {}
  /// A module with the given options.
  explicit PositionalEncodingImpl(PositionalEncodingOptions options_);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// Returns x plus its encodings. `offset` is the position of x's first row; `position_ids` are
  /// explicit positions instead, (L) or with the shape of x without its last axis. With grow(true)
  /// they extend the table only on the CPU, since reading them back would synchronise a GPU.
  torch::Tensor forward(const torch::Tensor& x, int64_t offset = 0,
                        const torch::Tensor& position_ids = {});

  /// Returns the table, (1, >= rows, D), extended first if it is shorter than `rows` and may grow.
  /// Later growth does not affect the returned tensor. For TableSource::Buffer.
  torch::Tensor table(int64_t rows);

  PositionalEncodingOptions options;    ///< the options given to the constructor
  torch::Tensor pe;                     ///< undefined without TableSource::Buffer
  torch::nn::Dropout dropout{nullptr};  ///< applied to the sum

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(int64_t{0})},
                                  {2, torch::nn::AnyValue(torch::Tensor())})

 private:
  friend struct PositionalEncodingAccess;

  TableRecipe table_recipe() const override;
  void convert(torch::Dtype dtype) override;
  void grow_to(int64_t rows);

  detail::Opaque<PositionalEncodingState> state_;
};

TORCH_MODULE(PositionalEncoding);

}  // namespace posenc
