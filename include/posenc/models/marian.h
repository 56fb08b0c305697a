#pragma once

#include <cstdint>
#include <string>

#include "posenc/export.h"
#include "posenc/models/generate.h"
#include "posenc/models/transformer.h"

namespace posenc POSENC_EXPORT {

/// A Marian checkpoint, ready for generate().
struct MarianModel {
  Transformer model{nullptr};  ///< in eval mode
  GenerateOptions generation;  ///< from generation_config.json, otherwise from config.json
  int64_t pad;                 ///< the padding id of sources; MarianConfig's default is 58100
};

/// Loads a folder saved by Hugging Face's MarianMTModel, without conversion: config.json,
/// generation_config.json if there is one, and the weights in model.safetensors, pytorch_model.bin
/// or the shards of either.
///
/// ```cpp
/// auto marian = posenc::load_marian("opus-mt-en-de");
/// std::vector<torch::Tensor> sequences = {torch::tensor({7, 3, 0}), torch::tensor({5, 0})};
/// auto batch = posenc::functional::pad_sequences(
///     sequences, posenc::functional::PadSequencesOptions().pad_id(marian.pad));
/// auto mask = posenc::AttentionMask::key_padding(batch.mask);
/// auto found = posenc::generate(marian.model, batch.ids, mask, marian.generation);
/// ```
///
/// The model is float32 whatever the dtype in the file. Its logits are those of transformers,
/// including sinusoid, embedding scale, activation and `final_logits_bias` (final_layer.bias).
/// Architecture, settings, sizes, names and shapes are checked before the model is built. Search
/// settings that generate() does not support are errors.
///
/// Errors: c10::ValueError for the contents of the JSON files; WeightsError for files and weights.
///
/// Source: transformers 5.23, models/marian/modeling_marian.py.
MarianModel load_marian(const std::string& folder);

}  // namespace posenc
