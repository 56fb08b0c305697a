#pragma once

#include <string_view>
#include <vector>

#include "models/settings.h"
#include "posenc/nn/embedding_front_options.h"

namespace posenc {

/// Completes the options of a front, in which only sizes, epsilon, dropout and scale of a
/// configuration are set.
using BuildFront = void (*)(const Settings& config, EmbeddingFrontOptions& options);

/// The front of a family of models.
struct FrontPresetRow {
  const char *name, *source, *formula;
  BuildFront build;
};

/// All of them.
const std::vector<FrontPresetRow>& front_preset_table();

/// A model type of transformers. Its sizes are those of its configuration class.
struct FrontModelRow {
  const char* model_type;
  const char* preset;
  BuildFront build = nullptr;  ///< replaces the preset's for small differences; null: none
};

/// All rows, sorted by preset. The first row of a preset determines how a configuration without a
/// known model type is read.
const std::vector<FrontModelRow>& front_model_table();

/// The row of `model_type`, or null.
const FrontModelRow* find_front_model(std::string_view model_type);

/// The front of a model with the settings of its class.
EmbeddingFrontOptions front_of(const Settings& config, const FrontModelRow& model);

}  // namespace posenc
