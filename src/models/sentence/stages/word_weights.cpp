#include <ATen/TensorIndexing.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "base/text.h"
#include "core/check.h"
#include "models/sentence/stages/stage_kind.h"
#include "posenc/core/cloneable.h"

namespace posenc::stages {
namespace {

using nlohmann::json;
using sentence::WordWeights;

bool is_ascii(const std::string& word) {
  return std::all_of(word.begin(), word.end(),
                     [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

// Finds the weights of words.
class WordWeightTable {
 public:
  explicit WordWeightTable(const Settings& config)
      : config_(config),
        weights_(config.value("word_weights")),
        unknown_(static_cast<float>(config.real("unknown_word_weight", 1.0))) {
    if (!weights_.is_object()) config.refuse("word_weights", "must be an object of numbers");
    for (const auto& [word, weight] : weights_.items()) {
      if (!weight.is_number()) config.refuse("word_weights", "must be numbers", {{word, weight}});
      has_other_letters_ = has_other_letters_ || !is_ascii(word);
    }
  }

  float operator()(const std::string& word) const {
    auto found = weights_.find(word);
    if (found == weights_.end() && is_ascii(word)) found = weights_.find(io::lower_case(word));
    if (found != weights_.end()) return found->get<float>();
    // The Kelvin sign is the only other letter whose lower-case form is one of ASCII.
    const bool is_unknown =
        is_ascii(word) || (!has_other_letters_ && word.find("\u212A") == std::string::npos);
    if (!is_unknown) {
      config_.refuse("word_weights",
                     "must have each word of `vocab` that has letters outside ASCII: posenc does "
                     "not look up its lower-case form",
                     word);
    }
    return unknown_;
  }

 private:
  const Settings& config_;
  const json& weights_;
  float unknown_;
  bool has_other_letters_ = false;
};

const json& words_in(const Settings& config) {
  const json& vocab = config.value("vocab");
  if (!vocab.is_array() || vocab.empty()) config.refuse("vocab", "must be a list of words");
  return vocab;
}

// The weight (V) of each word of `vocab`: that of the word or else of its lower-case form in
// `word_weights`, or `unknown_word_weight`.
at::Tensor word_weights_in(const Settings& config) {
  const WordWeightTable weight_of(config);
  const json& vocab = words_in(config);
  std::vector<float> weights;
  weights.reserve(vocab.size());
  for (const json& word : vocab) {
    if (!word.is_string()) config.refuse("vocab", "must be a list of words", word);
    weights.push_back(weight_of(word.get<std::string>()));
  }
  return at::tensor(weights, at::kFloat);
}

// The buffer is the weight of an embedding in sentence-transformers.
class WordWeightBuffer : public Cloneable<WordWeightBuffer> {
 public:
  explicit WordWeightBuffer(int64_t vocab_size) : vocab_size_(vocab_size) {
    WordWeightBuffer::reset();
  }

  void reset() override { weight = register_buffer("weight", at::ones({vocab_size_, 1})); }

  at::Tensor weight;

 private:
  int64_t vocab_size_;
};

class WordWeightsModule : public Cloneable<WordWeightsModule>, public StageModule {
 public:
  explicit WordWeightsModule(int64_t vocab_size) : vocab_size_(vocab_size) {
    WordWeightsModule::reset();
  }

  void reset() override {
    table = register_module("emb_layer", std::make_shared<WordWeightBuffer>(vocab_size_));
  }
  void reset_parameters() override {}

  std::shared_ptr<WordWeightBuffer> table;

 private:
  int64_t vocab_size_;
};

sentence::Stage read_word_weights(const Settings& config) {
  return WordWeights{static_cast<int64_t>(words_in(config).size())};
}

void follow_word_weights(const sentence::Stage& any, const StagePlace& place, StageWidths& widths) {
  widths.check_there(sentence::Feature::Tokens, place);
  check_positive("SentenceStages", "vocab_size", std::get<WordWeights>(any).vocab_size);
}

void run_word_weights(const sentence::Stage& any, const StageRun& run) {
  const int64_t vocab_size = std::get<WordWeights>(any).vocab_size;
  StageFeatures& features = run.features;
  const at::Tensor& ids = features.ids;
  TORCH_CHECK_VALUE(ids.defined() && ids.sizes() == features.tokens.sizes().slice(0, 2), run.place,
                    ": input_ids must be those of the tokens, ",
                    features.tokens.sizes().slice(0, 2), ". Got ",
                    ids.defined() ? c10::str(ids.sizes()) : "an undefined tensor");
  const bool are_known = ids.numel() == 0 ||
                         (ids.min().item<int64_t>() >= 0 && ids.max().item<int64_t>() < vocab_size);
  TORCH_CHECK_VALUE(are_known, run.place, ": input_ids must lie in [0, ", vocab_size, "). Got ",
                    ids.numel() == 0 ? 0 : ids.max().item<int64_t>());
  const at::Tensor& table = run.module->as<WordWeightsModule>()->table->weight;
  at::Tensor weights = table.squeeze(1).index({ids});
  if (features.mask.defined()) weights = weights.masked_fill(features.mask.eq(0), 0.0);
  features.tokens = features.tokens * weights.unsqueeze(-1);
  features.weights_sum = weights.sum(1);
}

std::shared_ptr<torch::nn::Module> make_word_weights(const sentence::Stage& any) {
  return std::make_shared<WordWeightsModule>(std::get<WordWeights>(any).vocab_size);
}

// As the package loads them.
void load_word_weights(const Settings& config, torch::nn::Module& module) {
  module.as<WordWeightsModule>()->table->weight.copy_(word_weights_in(config).unsqueeze(1));
}

}  // namespace

const StageKind kWordWeights = {.name = "WordWeights",
                                .read = read_word_weights,
                                .follow = follow_word_weights,
                                .run = run_word_weights,
                                .make = make_word_weights,
                                .load = load_word_weights};

}  // namespace posenc::stages
