#pragma once

#include <string>

#include "models/config/settings.h"
#include "models/types/model_types.h"
#include "posenc/positions/rotary/rotary_scaling.h"

namespace posenc {

/// One rotary embedding of a model: its own `rope_parameters`, with the defaults filled in, and the
/// settings that contain them.
struct RopeSettings {
  Settings parameters;       ///< of this layer type
  Settings top;              ///< the whole of rope_parameters, whose `truncate` YaRN reads
  int64_t max_position = 0;  ///< max_position_embeddings
  const hf::ModelType& model;

  /// The type of scaling by the name that it has in transformers.
  std::string rope_type() const;
};

/// The scaling that the parameters describe.
///
/// Throws c10::ValueError, naming the key: for a type that is not known, with the nearest names,
/// and for a parameter that is missing or of the wrong kind.
rotary::Scaling scaling_of(const RopeSettings& settings);

}  // namespace posenc
