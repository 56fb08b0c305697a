#pragma once

namespace posenc {

class Settings;

/// A `...ForCausalLM` of transformers, whose layers are those of the encoder of the same model
/// type: its output layer, by its name in a file, which has no prefix.
struct DecoderStructure {
  const char* head = "lm_head";
  const char* other_head = "";  ///< a further name: GPT-NeoX's `embed_out`
  bool has_bias = false;        ///< of the output layer
  /// Its class; empty: the model type's class without a head, with ForCausalLM in place of Model.
  const char* class_name = "";
  const char* scale_setting = "";    ///< the setting that multiplies the logits: Cohere
  const char* divisor_setting = "";  ///< the setting that divides them: Granite
  /// The setting of the logits' softcap; null or absent: none.
  const char* softcap_setting = "";
  /// The setting with the most tokens of a row, where the class has sizes for them but no table:
  /// GPT-J, MPT.
  const char* max_tokens_setting = "";
  /// The setting with the longest row that generate() does not compute anew: Phi-3, see
  /// DecoderOptions::restart_length.
  const char* restart_setting = "";
  /// Refuses settings of a model that is another one than the file's class computes; may be null.
  void (*check)(const Settings& config) = nullptr;
};

/// The output layer of most of them.
inline constexpr DecoderStructure kPlainDecoder = {};

}  // namespace posenc
