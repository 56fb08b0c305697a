#pragma once

// What the files of families write their rows with.

#include "models/encoder/layer_settings.h"
#include "models/encoder/names.h"
#include "models/types/model_types.h"

namespace posenc::families {

using embeddings::Norm, embeddings::Order, embeddings::PositionIds, embeddings::Projection;
using encoder::Pooling;
using head::Rows;
using hf::ModelType;
using relative::Grid;
using Rate = EncoderStructure::Rate;

// What Whisper has in common with BART: the layers of both stacks.

constexpr int64_t kBartMostWide = 1 << 20;
constexpr int64_t kBartMostPositions = 1 << 16;  ///< a table of this length is allocated
constexpr int64_t kBartMostTokens = 1 << 24;

/// Sets what the layers of both stacks have: their sizes, numbers, dropouts and activation.
void read_bart_layers(const Settings& config, TransformerOptions& options);

/// The settings of that; of those that `config` has in another way, only what differs.
nlohmann::json bart_layer_settings(const TransformerOptions& options, const Settings& config);

/// The names of the tensors of the layers, and of the norms after them, {theirs, ours}.
KeyMap bart_layer_keys();

}  // namespace posenc::families
