#pragma once

#include <string>

#include "posenc/inference/freeze_options.h"
#include "posenc/weights/load.h"
#include "posenc/weights/state_dict.h"

namespace posenc::cli {

/// What `posenc transcribe --logits` writes for the file `input` of `input_features` (N, M, W) and
/// `decoder_input_ids` (N, T): `logits` (N, T, V), each of the token after those up to its own, and
/// `encoder_last_hidden_state` (N, W / 2, D). `plain`: by the modules, not the frozen model.
StateDict forced_logits_of_sounds(const std::string& folder, const std::string& input,
                                  const FreezeOptions& freezing, const LoadOptions& load,
                                  bool plain);

}  // namespace posenc::cli
