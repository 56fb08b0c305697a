#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/settings.h"
#include "posenc/nn/embedding_front_options.h"

namespace posenc {

/// The defaults of a model's configuration class.
struct FrontSizes {
  int64_t vocab = 30522, hidden = 768, positions = 512, types = 2;
  double eps = 1e-12, dropout = 0.1;
  std::optional<int64_t> pad = 0;
  bool scales = false;          ///< whether the tokens are multiplied by sqrt(hidden)
  int64_t embedding = 0;        ///< width of the tables; 0: hidden
  bool types_optional = false;  ///< whether type_vocab_size may be 0
};

/// The names of these settings in a configuration, or any alias that its class has for them. One
/// without a name always has the value of FrontSizes; the width is `hidden_size` to all.
struct FrontKeys {
  const char* positions = "max_position_embeddings";
  const char* types = "type_vocab_size";
  const char* eps = "layer_norm_eps";
  const char* dropout = "hidden_dropout_prob";
  const char* pad = "pad_token_id";
  const char* scale = "";
  const char* embedding = "";
};

/// Completes the options of a front, in which only sizes, epsilon, dropout, scale and padding of a
/// configuration are set.
using BuildFront = void (*)(const Settings& config, EmbeddingFrontOptions& options);

/// The front of a family of models.
struct FrontPresetRow {
  const char *name, *source, *formula;
  BuildFront build;
};

/// All of them.
const std::vector<FrontPresetRow>& front_preset_table();

/// A model type of transformers.
struct FrontModelRow {
  const char* model_type;
  const char* preset;
  FrontSizes sizes;
  FrontKeys keys = {};
  BuildFront build = nullptr;  ///< replaces the preset's for small differences; null: none
};

/// All rows, sorted by preset. The first row of a preset determines how a configuration without a
/// known model type is read.
const std::vector<FrontModelRow>& front_model_table();

}  // namespace posenc
