#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/seq2seq/generation_config.h"
#include "posenc/inference/freeze_options.h"
#include "posenc/weights/load.h"
#include "posenc/weights/state_dict.h"

namespace posenc::cli {

/// The arguments of `posenc generate`.
struct GenerateArguments {
  std::string folder, input, output, text;
  std::vector<std::string> settings;
  FreezeOptions freezing = {};
  LoadOptions load = {};
  bool plain = false, logits = false;
  bool attention = false;  ///< of encoder-decoders
  double coverage_penalty = 0.0;
  std::optional<uint64_t> seed;
  int64_t batch = 8;  ///< lines of a text at a time
  std::vector<std::string> stop_strings;
  bool chat = false;                  ///< whether lines are messages
  std::string chat_variables = "{}";  ///< of the chat template
};

/// What `posenc generate` writes for the tensors of its input, of an encoder-decoder.
StateDict generate_targets(const GenerateArguments& arguments, const StateDict& given,
                           const SettingOverrides& overrides);
/// The same of a decoder-only language model.
StateDict continue_prompts(const GenerateArguments& arguments, const StateDict& given,
                           const SettingOverrides& overrides);

/// Prints the continuations of the lines of a text by a decoder-only language model.
void continue_lines(const GenerateArguments& arguments, const SettingOverrides& overrides);

}  // namespace posenc::cli
