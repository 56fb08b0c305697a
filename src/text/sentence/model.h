#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "inference/rows/frozen_call.h"
#include "posenc/inference/freeze_options.h"
#include "posenc/models/frozen_classifier.h"
#include "posenc/models/frozen_encoder.h"
#include "posenc/models/sentence_folder.h"
#include "text/sentence/text_rows.h"

// A model of sentence-transformers in a folder, loaded, of all classes that make vectors of texts.
namespace posenc::text {

/// The first stage of routes, frozen, with its tokenizer.
struct FirstModel {
  Tokenizer tokenizer;
  std::optional<FrozenEncoder> encoder = {};        ///< of FirstStage::Encoder
  std::optional<FrozenClassifier> classifier = {};  ///< of FirstStage::MaskedHead
  at::Tensor table = {};                            ///< (V, D) of FirstStage::StaticEmbedding
};

/// What texts of a task go through.
struct TaskModel {
  std::shared_ptr<const FirstModel> first;
  SentenceStages stages{nullptr};
  std::optional<int64_t> max_length;  ///< most tokens of a text
  RowRules rules;
  TokenizerOptions prompt_options;                ///< of a prompt alone, whose tokens are counted
  std::map<std::string, int64_t> prompt_lengths;  ///< of the folder's prompts, if they are counted
};

struct SentenceModel {
  SentenceFolder folder;
  std::map<sentence::Task, TaskModel> tasks;  ///< those that have a route
  torch_internals::CallOptions call = {};

  /// Throws c10::ValueError for a task without a route.
  const TaskModel& of(sentence::Task task) const;
  /// The vectors' width.
  int64_t width() const { return tasks.begin()->second.stages->width(); }
};

/// Loads all routes; an encoder that is in several is loaded and frozen once. `caller` is the
/// public function.
std::shared_ptr<const SentenceModel> load_sentence_model(const char* caller, SentenceFolder folder,
                                                         const FreezeOptions& options,
                                                         const LoadOptions& load);

/// How many of the first tokens of texts with that prompt are the prompt's; 0 if no stage leaves
/// them out.
int64_t prompt_length(const TaskModel& model, const std::string& prompt);

/// The vectors of ids (B, L) and what an encoder is given besides; `mask` is undefined if no row is
/// padded. The first `prompt_length` tokens are those of a prompt.
at::Tensor vectors_of_ids(const TaskModel& model, const at::Tensor& ids, const EncoderInputs& given,
                          const at::Tensor& mask, int64_t prompt_length,
                          std::optional<int64_t> max_active_dims);

/// The vectors (N, D) of rows, of a first stage that is an encoder, a table or nothing. The rows
/// are those of the texts `indices` of a call, by which an error names one; `caller` is the class.
at::Tensor dense_vectors(const char* caller, const TaskModel& model, const TextRows& rows,
                         const std::vector<int64_t>& indices, int64_t prompt_length,
                         std::optional<int64_t> max_active_dims = std::nullopt);

}  // namespace posenc::text
