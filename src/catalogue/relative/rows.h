#pragma once

// The tables of presets, one for each family of operations.

#include <functional>
#include <vector>

#include "catalogue/relative/given.h"
#include "posenc/catalogue/relative_preset.h"

namespace posenc::relative {

/// A preset, and what computes it.
struct PresetRow {
  RelativePreset preset;                                 ///< what the user sees
  std::function<RelativeOutputs(const Given&)> compute;  ///< the operations of the system, in order
};

using PresetRows = std::vector<PresetRow>;

PresetRows bucket_presets();    ///< T5 and its kin
PresetRows document_presets();  ///< positions of boxes and segments
PresetRows alibi_presets();     ///< slopes
PresetRows window_presets();    ///< Swin, BEiT
PresetRows timm_presets();      ///< timm's windows
PresetRows axis_presets();      ///< SAM: a table for each axis
PresetRows deberta_presets();   ///< content to position and back
PresetRows shift_presets();     ///< Transformer-XL and its kin
PresetRows block_presets();     ///< blocks of an utterance
PresetRows clamp_presets();     ///< Shaw et al. and its kin
PresetRows content_presets();   ///< terms that depend on the content alone

}  // namespace posenc::relative
