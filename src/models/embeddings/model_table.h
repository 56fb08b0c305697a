#pragma once

#include <string_view>
#include <vector>

#include "models/settings.h"
#include "posenc/nn/encoder_embeddings_options.h"

namespace posenc {

/// Completes the options of embeddings, in which only sizes, epsilon, dropout and scale of a
/// configuration are set.
using BuildEmbeddings = void (*)(const Settings& config, EncoderEmbeddingsOptions& options);

/// The embeddings of a family of models.
struct EncoderEmbeddingsPresetRow {
  const char *name, *source, *formula;
  BuildEmbeddings build;
};

/// All of them.
const std::vector<EncoderEmbeddingsPresetRow>& encoder_embeddings_preset_table();

/// A model type of transformers. Its sizes are those of its configuration class.
struct EncoderEmbeddingsModelRow {
  const char* model_type;
  const char* preset;
  BuildEmbeddings build = nullptr;  ///< replaces the preset's for small differences; null: none
};

/// All rows, sorted by preset. The first row of a preset determines how a configuration without a
/// known model type is read.
const std::vector<EncoderEmbeddingsModelRow>& encoder_embeddings_model_table();

/// The row of `model_type`, or null.
const EncoderEmbeddingsModelRow* find_embeddings_model(std::string_view model_type);

/// The embeddings of a model with the settings of its class.
EncoderEmbeddingsOptions embeddings_of(const Settings& config,
                                       const EncoderEmbeddingsModelRow& model);

}  // namespace posenc
