#pragma once

#include <optional>
#include <string>
#include <vector>

#include "posenc/export.h"
#include "posenc/models/encoder_head.h"

namespace posenc POSENC_EXPORT {

/// The contents of a folder that Hugging Face's save_pretrained() wrote.
struct FolderInfo {
  std::string weights;      ///< path of the weights, of the index of their shards, or of a frozen
                            ///< model
  std::string model_type;   ///< that of config.json; empty if it has none
  bool is_decoder = false;  ///< whether load_decoder() loads its model type
  bool is_encoder_decoder = false;  ///< whether load_seq2seq() does
  bool is_of_speech = false;        ///< whether its sources then are features of sound
  std::string embeddings_preset;  ///< the preset of the model's embeddings; empty if there is none
  /// What a sentence-transformers model does after its encoder, such as `Pooling (mean_tokens)`,
  /// `Dense (2_Dense)` and `Normalize`; of one that begins with a Router also that, with its
  /// routes. Empty for other models.
  std::vector<std::string> sentence_stages = {};
  /// The class of sentence-transformers, such as `SparseEncoder`; empty for a model that it did not
  /// write.
  std::string sentence_class = {};
};

/// Finds the weights of a model in `folder`, of a Router those of texts without a task, and the
/// preset of its embeddings: encoder_embeddings_preset() for token ids, vision_embeddings_preset()
/// for images. For a model with several encoders, such as CLIP, it is that of the encoder that
/// load_encoder() reads. `base`: of an adapter's folder, LoadOptions::base.
///
/// Errors: c10::ValueError for a config.json that is not an object; WeightsError for a folder
/// without weights and for files that cannot be read.
FolderInfo inspect_folder(const std::string& folder, const std::string& base = "");

/// What the head of a model is for, by `architectures` in the folder's config.json; nothing if that
/// names no class with a head that load_classifier() knows. No weights are read. With adapters
/// among the `options`, it is that of the class that they were trained on, as load_classifier() has
/// it.
///
/// Errors: c10::ValueError for a config.json that is not an object; WeightsError for a file that
/// cannot be read.
std::optional<head::Kind> inspect_head(const std::string& folder, const LoadOptions& options = {});

}  // namespace posenc
