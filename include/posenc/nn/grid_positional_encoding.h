#pragma once

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <string>
#include <utility>
#include <vector>

#include "posenc/core/cloneable.h"
#include "posenc/core/weight_notes.h"
#include "posenc/sinusoid/options.h"

namespace posenc {

struct GridPositionalEncodingOptions {
  /// How the table is registered.
  enum class Storage {
    Parameter,  ///< a frozen parameter, as in MAE and MoCo v3
    Buffer,     ///< a persistent buffer, as in diffusers' PatchEmbed
  };

  /// `sinusoid` has a grid: preset("mae_2d", 768, {{"height", 14}, {"cls_token", 1}}).
  GridPositionalEncodingOptions(SinusoidOptions sinusoid) : sinusoid_(std::move(sinusoid)) {}

  /// Which sinusoid over which grid, and whether a row of zeros for a class token comes first.
  TORCH_ARG(SinusoidOptions, sinusoid);
  TORCH_ARG(Storage, storage) = Storage::Parameter;
  /// The table's name in the state_dict; `position_embeddings` in Hugging Face's ViTMAE.
  TORCH_ARG(std::string, key) = "pos_embed";
};

/// Adds to each patch the sinusoid of its place in the image: x + pos_embed, R rows, one for each
/// of the N cells of the grid, after one of zeros for the class token where the sinusoid has it.
///
/// x: (B, R, D) or (R, D)  ->  as x.
/// Key: `pos_embed` or .key(), (1, R, D), a parameter with requires_grad false or a buffer.
/// Converted to another dtype it is rounded once, from the recipe. Throws c10::ValueError for a
/// sinusoid without a grid and a key that is empty or has a dot; forward:
/// functional::grid_positional_encoding().
/// Source: `MaskedAutoencoderViT` (facebookresearch/mae), `ViTMAEEmbeddings` (transformers),
/// `VisionTransformerMoCo` (facebookresearch/moco-v3), and every other grid preset.
class GridPositionalEncodingImpl : public Cloneable<GridPositionalEncodingImpl>,
                                   public WeightNotes {
 public:
  explicit GridPositionalEncodingImpl(GridPositionalEncodingOptions options_);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  std::vector<ComputedTable> computed_tables() const override;
  using torch::nn::Module::to;
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Dtype dtype, bool non_blocking = false) override;

  torch::Tensor forward(const torch::Tensor& x);

  /// The patches alone, (B, N, D) or (N, D), without the class token's row: MAE adds positions
  /// before it drops patches and puts the class token in front.
  torch::Tensor add_to_patches(const torch::Tensor& x);

  GridPositionalEncodingOptions options;
  torch::Tensor pos_embed;  ///< (1, R, D), under the name options.key()
};

TORCH_MODULE(GridPositionalEncoding);

}  // namespace posenc
