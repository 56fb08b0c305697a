#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inference/attention/relative_bias.h"
#include "inference/attention/rotation.h"
#include "inference/attention/token_cache.h"
#include "inference/linear/weight_converter.h"
#include "inference/rows/packing.h"
#include "posenc/transformer/layers/transformer_encoder.h"

namespace posenc::inference {

/// What layers are given besides rows and a mask; each may be undefined.
struct LayerInputs {
  at::Tensor position_ids;  ///< as in RowPositions
  at::Tensor segments;      ///< integers (B, L), those of TransformerXLOptions::segments
  std::optional<relative::Grid> grid = std::nullopt;  ///< of TransformerEncoder::forward_with()
  at::Tensor kept_rows = {};                          ///< the same, (B, L)
  /// The tokens before the rows of a causal stack, which are added to them; begun for the call.
  TokenCache* cache = nullptr;
  /// The rows whose results are used, ascending; null: all.
  const std::vector<int64_t>* used_rows = nullptr;
};

/// What it takes to compute new rows beside keys and values that were computed before.
struct CacheNeeds {
  std::vector<CachedAttention> attentions;  ///< in the order in which they run
  std::vector<LengthSwitch> switches;       ///< of their rotary embeddings
};

/// The layers of a frozen encoder, of one kind.
class FrozenLayers {
 public:
  explicit FrozenLayers(const TransformerEncoderImpl& encoder)
      : layer_options(encoder.options.layer()) {}
  virtual ~FrozenLayers() = default;

  /// Runs rows (rows, D) through all layers; may overwrite them. `packing` is that of packing_of(),
  /// `mask` that of mask_of(). The output of each layer is added to `outputs` (rows, D) unless it
  /// is null.
  virtual at::Tensor run(const at::Tensor& rows, const Packing& packing, const ScoreMask& mask,
                         const LayerInputs& inputs = {},
                         std::vector<at::Tensor>* outputs = nullptr) const = 0;

  /// The rows to compute: those of Packing::of(), or all if tokens see padding, or if distances are
  /// of tokens among rows that are none.
  Packing packing_of(const AttentionMask& mask, int64_t batch, int64_t length,
                     const at::Tensor& computed = {}) const {
    return sees_padding || (counts_tokens && computed.defined())
               ? Packing::whole(mask, batch, length)
               : Packing::of(mask, batch, length, computed);
  }
  /// What the packing does not cover of the mask that it was made from.
  ScoreMask mask_of(const Packing& packing, const AttentionMask& mask,
                    const at::Tensor& like) const;

  /// That of a causal stack, whose packing has Packing::past and all that is padding.
  ScoreMask causal_mask(const Packing& packing) const;

  /// Nothing if a row depends on others by more than attentions to keys and values.
  virtual std::optional<CacheNeeds> cache_needs() const { return std::nullopt; }

  const TransformerLayerOptions layer_options;  ///< of the stack
  std::optional<AlibiSlopes> alibi = std::nullopt;
  bool needs_key_masks = false;  ///< whether other masks are refused
  bool counts_tokens = false;    ///< whether distances of ALiBi count rows without padding
  bool sees_padding = false;     ///< whether tokens see padding, so that its rows must be computed
  bool is_axial = false;         ///< whether tokens have a position for each of several axes

 private:
  AttentionMask bias_of_keys(const AttentionMask& mask, int64_t length) const;
};

/// `prefix` begins the names of the parts in errors: `encoder.` or empty.
std::unique_ptr<const FrozenLayers> freeze_layers(const TransformerEncoderImpl& encoder,
                                                  const std::string& prefix,
                                                  WeightConverter& convert);

}  // namespace posenc::inference
