#pragma once

#include <cstdint>
#include <string>

#include "posenc/models/generate.h"
#include "posenc/models/transformer.h"

namespace posenc {

/// A Marian checkpoint: the model in eval mode, and how its targets are to be searched.
struct MarianModel {
  Transformer model{nullptr};
  GenerateOptions generation;  ///< of generation_config.json, or of config.json
  int64_t pad;                 ///< the id that pads sources; their lengths give the mask
};

/// Loads a folder as Hugging Face's MarianMTModel saves it, as it is: config.json,
/// generation_config.json where there is one, and the weights in model.safetensors,
/// pytorch_model.bin or the shards of either.
///
/// ```cpp
/// auto marian = posenc::load_marian("opus-mt-en-de");
/// std::vector<torch::Tensor> sequences = {torch::tensor({7, 3, 0}), torch::tensor({5, 0})};
/// auto batch = posenc::functional::pad_sequences(
///     sequences, posenc::functional::PadSequencesOptions().pad_id(marian.pad));
/// auto mask = posenc::AttentionMask::key_padding(batch.mask);
/// auto found = posenc::generate(*marian.model, batch.ids, mask, marian.generation);
/// ```
///
/// The model is float32, whatever the file's type; its logits are those of transformers, sinusoid,
/// embedding scale, activation and `final_logits_bias` (final_layer.bias) included. Everything is
/// checked before anything is built: the architecture, each setting, each size against the
/// weights, names and shapes. A setting of the search that generate() does not have is an error.
/// Errors: c10::ValueError for what the JSON files say, WeightsError for files and weights.
/// Source: transformers 5.23, models/marian/modeling_marian.py.
MarianModel load_marian(const std::string& folder);

}  // namespace posenc
