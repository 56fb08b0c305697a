#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/export.h"
#include "posenc/models/classifier.h"
#include "posenc/models/encoder.h"
#include "posenc/models/sentence_stages.h"

namespace posenc POSENC_EXPORT {

/// Options of save_sentence_model().
struct SaveSentenceModelOptions {
  /// The model that is saved came from the folder `source`.
  explicit SaveSentenceModelOptions(std::string source) : source_(std::move(source)) {}

  /// The folder of the model before it was trained, from which the tokenizer, the settings of the
  /// stages and what the encoder's class has besides are taken.
  TORCH_ARG(std::string, source);
  /// Whether `folder` may be `source`.
  TORCH_ARG(bool, overwrite) = false;
  /// Weights of more bytes than this are split into several files and an index.
  TORCH_ARG(int64_t, max_shard_bytes) = 50'000'000'000;
};

/// Saves a model of sentence-transformers whose encoder, stages or both were trained: `folder` can
/// then be opened by SentenceTransformer in Python and by load_sentence_encoder(), and the folder
/// of its encoder by from_pretrained().
///
/// ```cpp
/// const std::string source = "models/all-MiniLM-L6-v2";
/// auto encoder = posenc::load_encoder(posenc::read_sentence_folder(source).route().encoder);
/// auto stages = posenc::load_sentence_stages(source);  // train both
/// posenc::save_sentence_model(encoder, stages, "models/mine",
///                             posenc::SaveSentenceModelOptions(source));
/// ```
///
/// The stages are where the source has them, with its settings; an encoder without a modules.json
/// gets one. Of the source's other files, settings and texts (such as tokenizer.json, vocab.txt,
/// tokenizer.model, README.md) are copied, and weights are not. modules.json is written last: a new
/// folder that has one is complete.
///
/// Weights of tokens that are in a JSON file (idf.json) are written as a tensor, as the package
/// writes them.
///
/// Errors: those of save_pretrained() and read_sentence_folder(); c10::ValueError for stages that
/// are not those of the source, for other routes than its own and for a folder that is the source.
///
/// Source: `SentenceTransformer.save_pretrained` of sentence-transformers 6.2.
void save_sentence_model(const Encoder& encoder, const SentenceStages& stages,
                         const std::string& folder, const SaveSentenceModelOptions& options);
/// The same for a SparseEncoder whose first stage has a head for masked words, with SpladePooling
/// after it; without a modules.json the folder gets one.
void save_sentence_model(const Classifier& model, const SentenceStages& stages,
                         const std::string& folder, const SaveSentenceModelOptions& options);

/// What the texts of a route go through.
struct SentenceModelRoute {
  /// The first stage: an encoder, or a model with a head for masked words; none where the stages
  /// are given the ids, as SparseStaticEmbedding is, or for a static embedding, which is copied.
  std::variant<std::monostate, Encoder, Classifier> first;
  SentenceStages stages;  ///< after it
};

/// The same for a model with a Router. The routes are those of read_sentence_folder(source), in
/// their order, of which those whose first stages are in one folder have the same module.
void save_sentence_model(const std::vector<SentenceModelRoute>& routes, const std::string& folder,
                         const SaveSentenceModelOptions& options);

}  // namespace posenc
