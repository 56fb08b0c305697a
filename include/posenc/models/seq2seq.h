#pragma once

#include <cstdint>
#include <string>

#include "posenc/export.h"
#include "posenc/inference/generate.h"
#include "posenc/transformer/transformer.h"
#include "posenc/weights/load.h"

namespace posenc POSENC_EXPORT {

/// Where an encoder-decoder came from, which save_pretrained() needs to write it back.
struct Seq2SeqOrigin {
  std::string folder;             ///< that it was loaded from; empty if it was not loaded
  std::string config;             ///< the settings of its config.json
  std::string generation_config;  ///< the text of its generation_config.json; empty without one
};

/// An encoder-decoder from a folder, ready for generate().
struct Seq2SeqModel {
  Transformer model{nullptr};  ///< in eval mode
  GenerateOptions generation;  ///< from generation_config.json, otherwise from config.json
  /// The padding id of sources: pad_token_id, or its default in the class of the configuration; -1
  /// where a model of sound has none.
  int64_t pad;
  std::string model_type;     ///< as config.json has it
  Seq2SeqOrigin origin = {};  ///< empty for a model that was made by hand
};

/// Loads a folder saved by one of Hugging Face's encoder-decoders, without conversion: config.json,
/// generation_config.json if there is one, and the weights in model.safetensors, pytorch_model.bin
/// or the shards of either. docs/seq2seq.md has the model types.
///
/// ```cpp
/// auto loaded = posenc::load_seq2seq("opus-mt-en-de");
/// torch::Tensor source = torch::tensor({{7, 3, 0}});
/// auto options = loaded.generation.forced_bos_id(5);  // of NLLB: the target's language
/// auto found = posenc::generate(loaded.model, source, {}, options);
/// ```
///
/// The model is float32 whatever the dtype in the file. Its logits are those of transformers. The
/// file decides which matrices are tied, as in transformers 5: those that are absent, or equal.
/// Model type, settings, sizes, names and shapes are checked before the model is built. Search
/// settings that generate() does not support are errors of generate() with the loaded `generation`;
/// load_generation_config() replaces them. `options` are those of load_encoder().
///
/// Errors: c10::ValueError for the contents of the JSON files; WeightsError for files and weights.
///
/// Source: transformers 5.23, modeling_marian.py, modeling_bart.py and the others.
Seq2SeqModel load_seq2seq(const std::string& folder, const LoadOptions& options = {});

}  // namespace posenc
