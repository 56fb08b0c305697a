#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/config/settings.h"
#include "posenc/models/sentence_stages.h"
#include "posenc/weights/key_map.h"

namespace posenc {

/// How messages name a stage.
struct StagePlace {
  std::size_t number;
  const char* kind;
};

inline std::ostream& operator<<(std::ostream& stream, const StagePlace& place) {
  return stream << "[SentenceStages] stage " << place.number << ", " << place.kind;
}

/// The widths of what the stages have made; zero: there is no such feature.
struct StageWidths {
  int64_t d_model;  ///< of the encoder
  int64_t tokens = 0, sentence = 0;
  bool are_rows = false;  ///< whether tokens are those that have vectors, and not (B, L)

  int64_t& of(sentence::Feature feature) {
    return feature == sentence::Feature::Tokens ? tokens : sentence;
  }
  /// Throws c10::ValueError unless a stage has made what the one at `place` reads.
  void check_there(sentence::Feature read, const StagePlace& place);
  /// The same unless its width is `own`, which the stage calls `name`.
  void check_width(sentence::Feature read, const StagePlace& place, const char* name, int64_t own);
};

/// What a batch comes with.
struct StageInputs {
  at::Tensor mask, ids;
  at::IntArrayRef sizes;
  int64_t prompt_length;
  const std::vector<at::Tensor>& hidden_states;
  std::optional<int64_t> max_active_dims = {};
  at::Tensor scored = {};  ///< of the tokens that have vectors
  sentence::Task task = sentence::Task::None;
};

/// The features of a batch on their way through the stages.
struct StageFeatures {
  at::Tensor tokens, sentence;
  at::Tensor mask, ids;    ///< of the tokens
  at::Tensor weights_sum;  ///< of WordWeights, (B)
  at::Tensor lengths;      ///< (B) of tokens (T, D), once they are not (B, L, D)

  at::Tensor& of(sentence::Feature feature) {
    return feature == sentence::Feature::Tokens ? tokens : sentence;
  }
};

/// A stage that is run.
struct StageRun {
  const StageInputs& inputs;
  StageFeatures& features;
  torch::nn::Module* module;  ///< null for a kind without weights
  StagePlace place;
  bool is_training;
};

/// The weights of a stage, by the names that they have in a file.
class StageModule {
 public:
  virtual ~StageModule() = default;
  /// Draws new initial weights, as sentence-transformers does.
  virtual void reset_parameters() = 0;
};

/// A kind of stage, of which all is in a file of its name.
struct StageKind {
  const char* name;  ///< that of its class in sentence-transformers
  /// Reads its settings; null: no modules.json lists it. Throws c10::ValueError.
  sentence::Stage (*read)(const Settings& config);
  /// Follows the widths through a stage. Throws c10::ValueError unless it can be applied.
  void (*follow)(const sentence::Stage& stage, const StagePlace& place, StageWidths& widths);
  void (*run)(const sentence::Stage& stage, const StageRun& run);
  /// Makes its StageModule; null: it has no weights.
  std::shared_ptr<torch::nn::Module> (*make)(const sentence::Stage& stage) = nullptr;
  /// Loads weights that are in its settings; null: they are in a file of weights.
  void (*load)(const Settings& config, torch::nn::Module& module) = nullptr;
  /// How the names in its file, which has these, become those of its module; null: they are the
  /// same.
  KeyMap (*key_map)(const std::vector<std::string>& names) = nullptr;
  /// Whether it acts after an encoder with this config.json; null: always.
  bool (*acts)(const Settings& encoder) = nullptr;
  const char* file = "config.json";  ///< of its settings
  bool may_lack_settings = false;    ///< git keeps no empty folder
  bool takes_rows = false;           ///< whether it takes tokens that are not (B, L, D)
};

/// All kinds, in the order of sentence::Stage, and that of a stage.
std::span<const StageKind* const> stage_kinds();
const StageKind& kind_of(const sentence::Stage& stage);

/// The widths after all stages. Throws c10::ValueError, naming SentenceStages, for a stage that
/// reads what no stage has made, or something of another width.
StageWidths widths_after(const SentenceStagesOptions& options);

namespace stages {

extern const StageKind kPooling, kDense, kNormalize, kLayerNorm, kDropout, kWeightedLayerPooling,
    kWordWeights, kCNN, kSpladePooling, kSparseAutoEncoder, kSparseStaticEmbedding, kLexicalWeights,
    kMultiVectorMask, kTokenPooling;

/// Files of a stage's weights, of which the first that is there counts.
constexpr const char* kStageWeights[] = {"model.safetensors", "pytorch_model.bin"};

constexpr int64_t kWidest = 1 << 24;  // of what a stage makes

/// What a stage reads and what it writes, which is the former unless it is given.
std::pair<sentence::Feature, sentence::Feature> features_in(const Settings& config);

/// The ids (B, L) of the tokens, as int64. Throws c10::ValueError for ids that are not there, or
/// not below `vocab_size`.
at::Tensor token_ids(const StageRun& run, int64_t vocab_size);

/// log(1 + max(z, 0)), the logarithm taken `logs` times.
at::Tensor splade_weights(const at::Tensor& logits, int64_t logs);

}  // namespace stages
}  // namespace posenc
