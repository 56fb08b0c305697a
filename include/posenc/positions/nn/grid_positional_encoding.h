#pragma once

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <string>
#include <utility>

#include "posenc/core/fields.h"
#include "posenc/positions/nn/table_module.h"
#include "posenc/positions/sinusoid/options.h"

namespace posenc POSENC_EXPORT {

/// Options of GridPositionalEncoding.
struct GridPositionalEncodingOptions {
  /// How the table is registered.
  enum class RegisterAs {
    Parameter,  ///< a frozen parameter, as in MAE and MoCo v3
    Buffer,     ///< a persistent buffer, as in diffusers' PatchEmbed
  };

  /// Options for a `sinusoid` with a grid, such as
  /// preset("mae_2d", 768, {{"height", 14}, {"cls_token", 1}}).
  GridPositionalEncodingOptions(SinusoidOptions sinusoid) : sinusoid_(std::move(sinusoid)) {}

  /// The sinusoid with its grid, and with or without a row of zeros for a class token.
  TORCH_ARG(SinusoidOptions, sinusoid);
  /// How the table is registered.
  TORCH_ARG(RegisterAs, register_as) = RegisterAs::Parameter;
  /// The table's name in the state_dict; `position_embeddings` in Hugging Face's ViTMAE.
  TORCH_ARG(std::string, key) = "pos_embed";

  POSENC_FIELDS(GridPositionalEncodingOptions, sinusoid_, register_as_, key_);
};

/// Adds a two-dimensional (or higher) sinusoid to the patches of an image: x + pos_embed. Its R
/// rows are one for each of the N cells of the grid, after a row of zeros for the class token if
/// the sinusoid has one.
///
/// x: (B, R, D) or (R, D)  ->  as x.
///
/// When converted to another dtype the table is recomputed from the recipe and rounded once.
///
/// ```cpp
/// posenc::SinusoidOptions mae = posenc::preset("mae_2d", 32, {{"height", 14}, {"cls_token", 1}});
/// posenc::GridPositionalEncoding encoding{posenc::GridPositionalEncodingOptions(mae)};
/// torch::Tensor x = encoding->forward(torch::randn({2, 1 + 14 * 14, 32}));  // (2, 197, 32)
/// ```
///
/// Keys: `pos_embed`, or options.key(): (1, R, D), a buffer or a parameter that is not trained.
///
/// Errors: those of functional::grid_positional_encoding(); at construction, c10::ValueError for a
/// sinusoid without a grid and for a key that is empty or contains a dot.
///
/// Source: `MaskedAutoencoderViT` (facebookresearch/mae), `ViTMAEEmbeddings` (transformers),
/// `VisionTransformerMoCo` (facebookresearch/moco-v3), and every other grid preset.
class GridPositionalEncodingImpl : public TableModule<GridPositionalEncodingImpl> {
 public:
  /// A module with the given options.
  explicit GridPositionalEncodingImpl(GridPositionalEncodingOptions options_);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// Returns x plus the table.
  torch::Tensor forward(const torch::Tensor& x);

  /// forward() for patches without the class token, (B, N, D) or (N, D): MAE adds positions before
  /// it drops patches and prepends the class token.
  torch::Tensor add_to_patches(const torch::Tensor& x);

  GridPositionalEncodingOptions options;  ///< the options given to the constructor
  torch::Tensor pos_embed;                ///< (1, R, D), registered as options.key()

 private:
  TableRecipe table_recipe() const override;
};

TORCH_MODULE(GridPositionalEncoding);

}  // namespace posenc
