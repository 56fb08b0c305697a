#pragma once

#include <cstdint>
#include <optional>

#include "models/config/settings.h"
#include "posenc/positions/nn/encoder_embeddings_options.h"
#include "posenc/positions/nn/vision_embeddings_options.h"

namespace posenc {

/// The embeddings of token ids of a class of transformers. The defaults are those of
/// BertEmbeddings.
struct EmbeddingsStructure {
  embeddings::Norm norm = embeddings::Norm::AfterSum;
  embeddings::Order order = embeddings::Order::TypesFirst;
  embeddings::PositionIds position_ids = embeddings::PositionIds::Arange;
  /// As in EncoderEmbeddingsOptions; the table has these rows besides those that the configuration
  /// counts.
  int64_t position_offset = 0, first_position = 0;
  bool has_padding = true;                            ///< whether pad_token_id is a row of padding
  std::optional<int64_t> padding_idx = std::nullopt;  ///< that row whatever the configuration has
  bool has_types = true;                              ///< whether there is a table of token types
  bool types_from_tokens = false;  ///< whether types are rows of the tokens' table
  bool has_dropout = true;
  embeddings::Projection projection = embeddings::Projection::None;
  bool projects_always = true;  ///< also where both widths are the same
  bool projection_bias = true;
  /// Names of modules; null: those of embeddings::Names.
  const char *tokens = nullptr, *positions = nullptr, *norm_name = nullptr;
  const char* projection_name = "projection";
  /// Reads what few classes have besides; null: nothing.
  void (*more)(const Settings& config, EncoderEmbeddingsOptions& options) = nullptr;
};

/// The structures of types that have no family, or of several families, and that differ a little
/// from a preset's.
namespace tables {

extern const EmbeddingsStructure kBioGpt, kBlenderbot, kBlip2, kFunnel, kGpt, kInstructBlip, kLed,
    kLxmert, kPPFormulaNet, kTrOcr, kTvp;

}  // namespace tables

/// Completes the options of embeddings of images that have the sizes of a configuration and ViT's
/// structure.
using BuildVision = void(const Settings& config, VisionEmbeddingsOptions& options);

/// The same for images.
namespace patches {

BuildVision clip_without_cast, clip_without_positions, vit_with_mask;

}  // namespace patches
}  // namespace posenc
