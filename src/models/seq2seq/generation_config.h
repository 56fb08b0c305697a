#pragma once

#include <c10/util/Exception.h>

#include <map>
#include <span>
#include <string>

#include "models/config/settings.h"
#include "posenc/inference/generate_options.h"
#include "posenc/transformer/transformer.h"

namespace posenc {

/// The text of a folder's generation_config.json; empty without one. Throws WeightsError.
std::string generation_text(const std::string& folder);

/// The settings of generate() in a generation_config.json, and in a config.json where there is
/// none.
Settings settings_of_generation(const Settings& generation);
Settings generation_of_config(const Settings& config);

/// A value that replaces a setting of a folder, and what errors call it, such as an option.
struct SettingOverride {
  nlohmann::json value;  ///< null removes the setting
  std::string label;
};
using SettingOverrides = std::map<std::string, SettingOverride>;

/// The settings with those of `overrides` in place of theirs. Throws c10::ValueError for a name
/// that is neither a setting of generate() nor one of `others`.
Settings replaced_settings(Settings settings, const SettingOverrides& overrides,
                           std::span<const char* const> others = {});

/// Those in a model's folder, where those of `overrides` replace them;
/// `config` is its config.json. Throws as load_generation_config().
Settings generation_settings(const std::string& folder, const Settings& config,
                             const SettingOverrides& overrides = {});

/// Those of a decoder-only language model.
Settings decoder_generation_settings(const std::string& folder,
                                     const SettingOverrides& overrides = {});

/// What begins the rows of a search: a start token, or a prompt.
enum class Begin { StartToken, Prompt };

/// The options that they mean for a model with a vocabulary of `vocab` tokens.
GenerateOptions generate_options(const Settings& settings, int64_t vocab,
                                 Begin begin = Begin::StartToken);
/// The same, or for settings that generate() does not have options whose `unsupported` says so.
GenerateOptions generate_options_or_error(const Settings& settings, int64_t vocab,
                                          Begin begin = Begin::StartToken);

/// Throws what generate() would of these options, which `settings` mean, for sources `src` (B, S),
/// before any work: an error says whose value it was.
void check_search(const Settings& settings, const GenerateOptions& options,
                  const torch::Tensor& src, const TransformerOptions& model);

/// Throws an error of generate() for options that `settings` mean so that it says whose value it
/// was.
[[noreturn]] void rethrow_labelled(const Settings& settings, const c10::ValueError& error);

/// The token that fills returned rows after their end: pad_token_id, otherwise the first that ends
/// them; -1 if there is neither. `beams`: in a beam search, where a pad_token_id of 0 is none.
int64_t fill_token(const Settings& settings, bool beams);

}  // namespace posenc
